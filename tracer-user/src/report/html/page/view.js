// Which part of time is seen, and which gap is picked.

const whole = lanes.length
  ? { from: Math.min(...lanes.map((lane) => lane.start)), to: Math.max(...lanes.map((lane) => lane.end)) }
  : { from: 0, to: 1 };
const NARROWEST = 200; // ns
const view = { from: whole.from, to: whole.to, picked: null };

const see = (from, to) => {
  const all = whole.to - whole.from;
  const length = Math.min(Math.max(to - from, Math.min(NARROWEST, all)), all);
  const start = Math.min(Math.max((from + to - length) / 2, whole.from), whole.to - length);
  view.from = start;
  view.to = start + length;
};

// Around a moment that stays where it is.
const zoom = (factor, at = (view.from + view.to) / 2) =>
  see(at - (at - view.from) * factor, at + (view.to - at) * factor);

const move = (part) => {
  const by = (view.to - view.from) * part;
  const kept = Math.min(Math.max(by, whole.from - view.from), whole.to - view.to);
  see(view.from + kept, view.to + kept);
};

// So that a gap is seen and more than a line.
const bring = (gap) => {
  const length = view.to - view.from;
  const seen = gap.start >= view.from && gap.end <= view.to;
  if (gap.length < length / 60 || gap.length > length) {
    const around = Math.max(gap.length * 12, NARROWEST);
    see(gap.start + gap.length / 2 - around / 2, gap.start + gap.length / 2 + around / 2);
  } else if (!seen) {
    const middle = gap.start + gap.length / 2;
    see(middle - length / 2, middle + length / 2);
  }
};
