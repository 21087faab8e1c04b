// Numbers in words, and elements. Text only ever becomes a text node: no name in a recording can become markup.

const time = (ns) => {
  const size = Math.abs(ns);
  if (size < 1e3) return `${ns} ns`;
  if (size < 1e6) return `${(ns / 1e3).toFixed(1)} µs`;
  if (size < 1e9) return `${(ns / 1e6).toFixed(2)} ms`;
  return `${(ns / 1e9).toFixed(2)} s`;
};

const percent = (part, whole) => {
  const value = whole > 0 ? (part / whole) * 100 : 0;
  if (part === 0) return "0 %";
  if (part === whole) return "100 %";
  if (value < 0.1) return "<0.1 %";
  return value > 99.9 ? ">99.9 %" : `${value.toFixed(1)} %`;
};

const element = (tag, attributes = {}, ...inside) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...inside);
  return made;
};

const SVG = "http://www.w3.org/2000/svg";
const shape = (tag, attributes, ...inside) => {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...inside);
  return made;
};

// Pieces [start, length, class] of a whole, side by side.
const pieces = (list, whole) =>
  shape(
    "svg",
    { class: "parts tall", viewBox: "0 0 1000 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    shape("rect", { class: "ground", width: 1000, height: 10 }),
    ...list.map(([start, length, color]) =>
      shape("rect", {
        class: color,
        x: ((start * 1000) / whole).toFixed(2),
        width: Math.max((length * 1000) / whole, 0.5).toFixed(2),
        height: 10,
      }),
    ),
  );

const swatch = (color) =>
  shape(
    "svg",
    { class: "swatch", viewBox: "0 0 10 10", "aria-hidden": "true" },
    shape("rect", { class: color, width: 10, height: 10, rx: 2 }),
  );
