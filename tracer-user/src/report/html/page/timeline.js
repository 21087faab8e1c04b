// The timeline's controls: buttons, keys, mouse.

const area = document.getElementById("lanes");

const pick = (gap, speak = true) => {
  if (!gap) return;
  view.picked = gap;
  bring(gap);
  draw();
  show(gap);
  if (speak) document.getElementById("said").textContent = summary(gap);
};

const laneOf = (gap) => Math.max(lanes.findIndex((lane) => gap && lane.device === gap.device), 0);

const neighbour = (by) => {
  const lane = lanes[laneOf(view.picked)];
  if (!lane || !lane.gaps.length) return;
  const at = view.picked ? lane.gaps.indexOf(view.picked) : by > 0 ? -1 : lane.gaps.length;
  pick(lane.gaps[Math.min(Math.max(at + by, 0), lane.gaps.length - 1)]);
};

// The gap of the lane above or below that is nearest in time.
const otherLane = (by) => {
  const moment = view.picked ? view.picked.start : view.from;
  for (let index = laneOf(view.picked) + by; lanes[index]; index += by) {
    if (lanes[index].gaps.length) {
      pick(lanes[index].gaps.reduce((best, gap) => (Math.abs(gap.start - moment) < Math.abs(best.start - moment) ? gap : best)));
      return;
    }
  }
};

const longest = () => pick(gaps.find((gap) => lanes.some((lane) => lane.device === gap.device)));
const after = (act) => () => { act(); draw(); };

const BUTTONS = {
  "zoom-in": after(() => zoom(0.5)),
  "zoom-out": after(() => zoom(2)),
  "zoom-all": after(() => see(whole.from, whole.to)),
  "move-left": after(() => move(-0.3)),
  "move-right": after(() => move(0.3)),
  "gap-before": () => neighbour(-1),
  "gap-after": () => neighbour(1),
  "gap-longest": longest,
};

const KEYS = {
  ArrowLeft: (event) => (event.shiftKey ? after(() => move(-0.3))() : neighbour(-1)),
  ArrowRight: (event) => (event.shiftKey ? after(() => move(0.3))() : neighbour(1)),
  ArrowUp: () => otherLane(-1),
  ArrowDown: () => otherLane(1),
  "+": BUTTONS["zoom-in"],
  "=": BUTTONS["zoom-in"],
  "-": BUTTONS["zoom-out"],
  0: BUTTONS["zoom-all"],
  Home: longest,
  Enter: () => (panel.hidden ? longest() : panel.focus()),
};

// What is under the mouse: the lane, the moment, and the gap that is nearest to it.
const under = (event) => {
  const box = canvas.getBoundingClientRect();
  const index = Math.floor((event.clientY - box.top - AXIS) / LANE);
  const scale = (view.to - view.from) / box.width;
  const moment = view.from + (event.clientX - box.left) * scale;
  const lane = lanes[index];
  if (!lane) return { moment, gap: null, lane: null };
  const near = 4 * scale;
  let found = null;
  for (const gap of lane.gaps) {
    const away = Math.max(gap.start - moment, moment - gap.end, 0);
    if (away <= near && (!found || away < found.away || (away === found.away && gap.length < found.gap.length))) found = { gap, away };
  }
  return { moment, lane, gap: found && found.gap };
};

const tip = document.getElementById("tip");
const hint = (event) => {
  const { lane, gap, moment } = under(event);
  let words = "";
  if (gap) words = `${summary(gap)}\n${because(gap.cause)}`;
  else if (lane && moment >= lane.start && moment < lane.end) {
    const column = lane.columns[Math.floor((moment - lane.start) / lane.column_ns)] || [];
    const parts = column.map(([cause, ns]) => [causes[cause].code, ns]).sort((a, b) => b[1] - a[1]).slice(0, 4);
    words = `GPU ${lane.device} at ${time(moment)}: ${parts.length ? parts.map(([code, ns]) => `${code} ${percent(ns, lane.column_ns)}`).join(", ") : "no waiting"}`;
  }
  tip.hidden = !words;
  if (!words) return;
  tip.textContent = words;
  const box = area.getBoundingClientRect();
  tip.style.left = `${Math.min(Math.max(event.clientX - box.left + 14, 0), Math.max(box.width - tip.offsetWidth - 4, 0))}px`;
  tip.style.top = `${Math.min(event.clientY - box.top + 16, Math.max(box.height - tip.offsetHeight - 4, 0))}px`;
};

const drags = () => {
  let held = null;
  area.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    held = { x: event.clientX, from: view.from, to: view.to, moved: false };
    area.setPointerCapture(event.pointerId);
  });
  area.addEventListener("pointermove", (event) => {
    if (!held) { hint(event); return; }
    const by = event.clientX - held.x;
    if (Math.abs(by) > 3) held.moved = true;
    if (!held.moved) return;
    tip.hidden = true;
    const shift = Math.min(Math.max((-by / canvas.clientWidth) * (held.to - held.from), whole.from - held.from), whole.to - held.to);
    see(held.from + shift, held.to + shift);
    draw();
  });
  area.addEventListener("pointerup", (event) => {
    const clicked = held && !held.moved;
    held = null;
    if (clicked) pick(under(event).gap);
  });
  area.addEventListener("pointercancel", () => { held = null; });
  area.addEventListener("pointerleave", () => { tip.hidden = true; });
  // The wheel scrolls the page unless the timeline was chosen.
  area.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && document.activeElement !== area) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, under(event).moment);
    draw();
  }, { passive: false });
};

if (area && lanes.length) {
  area.hidden = false;
  document.getElementById("timeline-tools").hidden = false;
  for (const [id, act] of Object.entries(BUTTONS)) document.getElementById(id).addEventListener("click", act);
  area.addEventListener("keydown", (event) => {
    const act = !event.ctrlKey && !event.metaKey && !event.altKey && KEYS[event.key];
    if (!act) return;
    event.preventDefault();
    act(event);
  });
  drags();
  const byId = new Map(gaps.map((gap) => [String(gap.id), gap]));
  for (const button of document.querySelectorAll("button[data-gap]")) {
    button.addEventListener("click", () => {
      pick(byId.get(button.dataset.gap));
      document.getElementById("timeline").scrollIntoView();
      panel.focus({ preventScroll: true });
    });
  }
  // The longest gap is there from the beginning, seen within the whole.
  const first = gaps.find((gap) => lanes.some((lane) => lane.device === gap.device));
  if (first) {
    view.picked = first;
    show(first);
  }
  draw();
  new ResizeObserver(() => draw()).observe(area);
}
