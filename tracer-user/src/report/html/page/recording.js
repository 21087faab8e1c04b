// What the page knows: rows of numbers, given names.

const source = JSON.parse(document.getElementById("recording").textContent) || {
  devices: [], gaps: [], chains: [], texts: [""], causes: [], total_gaps: 0,
};
const word = (number) => source.texts[number];
const causes = source.causes.map(([code, says, color]) => ({ code, says, color }));
const unknown = (cause) => cause.code === "unknown" || cause.code.startsWith("unknown.");
const because = (cause) => (unknown(cause) ? cause.says : `because ${cause.says}`);

// The longest first.
const gaps = source.gaps.map(([id, device, kind, start, length, cause, stage, enabler, segments]) => ({
  id, device, kind, start, length, end: start + length,
  cause: causes[cause], stage: word(stage), enabler: word(enabler),
  segments: segments.map(([from, ns, why, at, object, thread, chain, inferred]) => ({
    start: from, length: ns, cause: causes[why], stage: word(at), object: word(object),
    thread: word(thread), chain, inferred: inferred === 1,
  })),
}));

const chain = (number) =>
  number === 0
    ? []
    : source.chains[number - 1].map(([who, does, edge]) => ({ who: word(who), does: word(does), edge: word(edge) }));

const lanes = source.devices.map((device) => ({
  ...device,
  gaps: gaps.filter((gap) => gap.device === device.device).sort((a, b) => a.start - b.start),
}));
