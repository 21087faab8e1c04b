// The gap that is picked: its time by cause, and the chain behind each piece.

const panel = document.getElementById("gap");
const KINDS = ["no work at all", "only a copy ran", "only communication ran"];

const summary = (gap) =>
  `Gap ${gap.id} of GPU ${gap.device}: ${time(gap.length)} at ${time(gap.start)}, mostly ${gap.cause.code}`;

const longestOf = (gap) =>
  gap.segments.reduce((best, segment) => (!best || segment.length > best.length ? segment : best), null);

const show = (gap) => {
  panel.hidden = false;
  const ofCause = gap.segments
    .filter((segment) => segment.cause === gap.cause)
    .reduce((sum, segment) => sum + segment.length, 0);
  const known = gap.segments.reduce((sum, segment) => sum + segment.length, 0);
  const place = element("div", { id: "chain", "aria-live": "polite" });
  const answer = element(
    "p", {},
    `${percent(ofCause, gap.length)} of it ${because(gap.cause)} (`, element("code", {}, gap.cause.code), ")",
    gap.stage && gap.stage !== "other" ? `; stage: ${gap.stage}.` : ".",
    gap.enabler ? ` ${gap.enabler} had drained the launch queue: nothing was left for the GPU to go on with.` : "",
  );
  const longest = longestOf(gap);
  const rows = gap.segments.map((segment, index) => segmentRow(gap, segment, index, place));
  const short = shortest(gap);
  for (const index of short) rows[index].hidden = true;
  const table = element(
    "div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Its time" },
    element(
      "table", {},
      element("caption", {}, element("b", {}, "Its time"), element("span", { class: "faint" }, " press a cause to see its chain")),
      element("thead", {}, element("tr", {}, ...HEAD.map(([title, kind]) => element("th", { scope: "col", class: kind }, title)))),
      element("tbody", {}, ...rows),
    ),
  );
  panel.replaceChildren(
    element("h3", {}, `Gap ${gap.id} of GPU ${gap.device}: ${time(gap.length)}, ${KINDS[gap.kind]}, ${time(gap.start)} after the beginning`),
    answer,
    pieces(gap.segments.map((segment) => [segment.start, segment.length, segment.cause.color]), gap.length),
    place,
    table,
    ...(short.length ? [allOf(rows, short, gap)] : []),
    ...(known < gap.length ? [element("p", { class: "faint" }, `and shorter pieces with ${time(gap.length - known)} together`)] : []),
    element("p", { class: "faint" }, "With the rows that it rests on: ", element("code", {}, `gtrace explain DIR --gap ${gap.id}`)),
  );
  if (longest) showChain(gap, longest, place);
};

// Of many pieces the places of all but the longest.
const MANY = 10;
const shortest = (gap) =>
  gap.segments.length <= MANY + 2
    ? []
    : gap.segments.map((segment, index) => [segment.length, index]).sort((a, b) => b[0] - a[0]).slice(MANY).map(([, index]) => index);

const allOf = (rows, short, gap) => {
  const sum = short.reduce((ns, index) => ns + gap.segments[index].length, 0);
  const more = element("button", { type: "button", class: "more" }, `Show ${short.length} shorter pieces (${time(sum)})`);
  more.addEventListener("click", () => {
    for (const index of short) rows[index].hidden = false;
    rows[short.sort((a, b) => a - b)[0]].querySelector("button").focus();
    more.remove();
  });
  return more;
};

const HEAD = [["from", "n"], ["length", "n"], ["share", "n"], ["cause", ""], ["in", ""], ["on", ""]];

const segmentRow = (gap, segment, index, place) => {
  const pick = element("button", { type: "button", class: "link", "aria-label": `Chain of piece ${index + 1}, ${segment.cause.code}` }, segment.cause.code);
  pick.addEventListener("click", () => showChain(gap, segment, place));
  return element(
    "tr", { "data-start": segment.start },
    element("td", { class: "n" }, `+${time(segment.start)}`),
    element("td", { class: "n" }, time(segment.length)),
    element("td", { class: "n" }, percent(segment.length, gap.length)),
    element("td", { class: "cause" }, swatch(segment.cause.color), " ", pick, segment.inferred ? element("span", { class: "faint" }, " (inferred)") : ""),
    element("td", {}, segment.thread),
    element("td", {}, segment.object),
  );
};

const showChain = (gap, segment, place) => {
  for (const row of panel.querySelectorAll("tbody tr")) {
    if (row.dataset.start === String(segment.start)) row.setAttribute("aria-current", "true");
    else row.removeAttribute("aria-current");
  }
  const hops = chain(segment.chain);
  const title = element("h4", {}, `The chain behind ${segment.cause.code}, ${time(segment.length)} from +${time(segment.start)}`);
  if (!hops.length) {
    place.replaceChildren(title, element("p", {}, `There is no chain of threads: ${segment.cause.says}.`));
    return;
  }
  const list = hops.map((hop, index) =>
    element(
      "li", {},
      element("b", {}, hop.who), ` ${hop.does}`,
      index + 1 < hops.length
        ? element("span", { class: "edge" }, hop.edge)
        : element("span", { class: "leaf" }, `this is the cause: ${segment.cause.says}`),
    ),
  );
  place.replaceChildren(title, element("ol", { class: "chain" }, ...list));
};
