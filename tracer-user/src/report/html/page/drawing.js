// The timeline's picture: for each GPU the share of waiting by cause, and below it the single gaps.

const canvas = document.getElementById("canvas");
const AXIS = 26;
const LABEL = 22;
const SHARES = 54;
const SINGLE = 20;
const BETWEEN = 12;
const LANE = LABEL + SHARES + 3 + SINGLE + BETWEEN;

const colors = () => {
  const style = getComputedStyle(document.documentElement);
  return new Proxy({}, { get: (known, name) => (known[name] ??= style.getPropertyValue(`--${name}`).trim()) });
};

const laneTop = (index) => AXIS + index * LANE;

const step = (length, most) => {
  const raw = length / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw);
};

const tick = (ns, size) => {
  const [unit, name] = size >= 1e8 ? [1e9, "s"] : size >= 1e5 ? [1e6, "ms"] : size >= 1e2 ? [1e3, "µs"] : [1, "ns"];
  const digits = Math.max(0, -Math.floor(Math.log10(size / unit)));
  return `${(ns / unit).toFixed(digits)} ${name}`;
};

const drawAxis = (pen, width, height, paint) => {
  const length = view.to - view.from;
  const size = step(length, Math.max(width / 110, 2));
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  pen.textAlign = "left";
  for (let at = Math.ceil(view.from / size) * size; at <= view.to; at += size) {
    const x = Math.round(((at - view.from) / length) * width);
    pen.fillStyle = paint.line;
    pen.fillRect(x, 0, 1, height);
    pen.fillStyle = paint.faint;
    if (x < width - 60) pen.fillText(tick(at, size), x + 5, AXIS / 2);
  }
};

// Stacked from the ground: of the time of one point, the share that was waited, by cause.
const drawShares = (pen, lane, top, width, paint) => {
  const scale = (view.to - view.from) / width;
  pen.fillStyle = paint.inset;
  const left = Math.max(0, (lane.start - view.from) / scale);
  const right = Math.min(width, (lane.end - view.from) / scale);
  if (right > left) pen.fillRect(left, top, right - left, SHARES);
  const sums = new Float64Array(causes.length);
  for (let x = Math.floor(left); x < right; x += 1) {
    const first = Math.max(0, Math.floor((view.from + x * scale - lane.start) / lane.column_ns));
    const last = Math.min(
      lane.columns.length - 1,
      Math.max(first, Math.ceil((view.from + (x + 1) * scale - lane.start) / lane.column_ns) - 1),
    );
    sums.fill(0);
    for (let column = first; column <= last; column += 1) {
      for (const [cause, ns] of lane.columns[column]) sums[cause] += ns;
    }
    const end = Math.min(lane.end, lane.start + (last + 1) * lane.column_ns);
    const time = Math.max(end - (lane.start + first * lane.column_ns), 1);
    let y = top + SHARES;
    for (const cause of order) {
      if (sums[cause] === 0) continue;
      const high = Math.min((sums[cause] / time) * SHARES, y - top);
      pen.fillStyle = paint[causes[cause].color];
      pen.fillRect(x, y - high, 1, high);
      y -= high;
    }
  }
};

// The same order everywhere: by colour, so that the largest lie on the ground.
const order = causes.map((_, index) => index).sort((a, b) => rank(causes[a].color) - rank(causes[b].color));
function rank(color) {
  return color === "c0" ? 9 : color === "cu" ? 10 : Number(color.slice(1));
}

const drawSingle = (pen, lane, top, width, paint) => {
  const scale = (view.to - view.from) / width;
  pen.fillStyle = paint.inset;
  const left = Math.max(0, (lane.start - view.from) / scale);
  const right = Math.min(width, (lane.end - view.from) / scale);
  if (right > left) pen.fillRect(left, top, right - left, SINGLE);
  for (const gap of lane.gaps) {
    if (gap.end < view.from || gap.start > view.to) continue;
    const x = (gap.start - view.from) / scale;
    const wide = gap.length / scale;
    pen.fillStyle = paint[gap.cause.color];
    pen.fillRect(x, top, Math.max(wide, 1), SINGLE);
    if (wide < 6) continue;
    for (const segment of gap.segments) {
      pen.fillStyle = paint[segment.cause.color];
      pen.fillRect(x + segment.start / scale, top, Math.max(segment.length / scale, 0.5), SINGLE);
    }
  }
  if (view.picked && view.picked.device === lane.device) {
    const x = (view.picked.start - view.from) / scale;
    const wide = Math.max(view.picked.length / scale, 2);
    pen.strokeStyle = paint.ink;
    pen.lineWidth = 2;
    pen.strokeRect(x - 1, top - 2, wide + 2, SINGLE + 4);
    pen.fillStyle = paint.ink;
    pen.beginPath();
    pen.moveTo(x + wide / 2 - 5, top + SINGLE + 10);
    pen.lineTo(x + wide / 2 + 5, top + SINGLE + 10);
    pen.lineTo(x + wide / 2, top + SINGLE + 3);
    pen.fill();
  }
};

const draw = () => {
  if (!canvas || !lanes.length) return;
  const width = canvas.clientWidth;
  if (width === 0) return;
  const height = AXIS + lanes.length * LANE + 4;
  const fine = window.devicePixelRatio || 1;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * fine);
  canvas.height = Math.round(height * fine);
  const pen = canvas.getContext("2d");
  pen.setTransform(fine, 0, 0, fine, 0, 0);
  const paint = colors();
  pen.fillStyle = paint.paper;
  pen.fillRect(0, 0, width, height);
  drawAxis(pen, width, height, paint);
  lanes.forEach((lane, index) => {
    const top = laneTop(index);
    drawShares(pen, lane, top + LABEL, width, paint);
    drawSingle(pen, lane, top + LABEL + SHARES + 3, width, paint);
    const label = `GPU ${lane.device}  ${lane.name}`;
    pen.font = "600 12px system-ui, sans-serif";
    pen.fillStyle = paint.paper;
    pen.fillRect(4, top + 2, pen.measureText(label).width + 8, LABEL - 4);
    pen.fillStyle = paint.ink;
    pen.textAlign = "left";
    pen.fillText(label, 8, top + LABEL / 2);
  });
  const range = document.getElementById("range");
  range.textContent = `${time(view.from)} to ${time(view.to)} of the recording, ${time(view.to - view.from)} seen`;
};
