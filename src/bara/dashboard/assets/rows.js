// A row for each client: what it earned, what it asked, and what was promised but came back.

import { money, s } from "./dom.js";
import { extent, scale, ticks } from "./scales.js";

const STEP = 21;

/** The drawing of payments, for a `Figure`. */
export function payments(spec, width) {
  const { clients } = spec;
  const room = Math.min(width * 0.34, 190);
  const letters = Math.floor(room / 7.2);
  const height = clients.length * STEP + 34;
  const domain = extent(clients.flatMap((one) => [one.paid + one.returned, one.asked ?? 0]), { zero: true });
  const x = scale(domain, [room, width - 14]);
  const bottom = clients.length * STEP + 4;
  const marks = ticks(...domain, width < 500 ? 3 : 6);
  const cursor = s("g", {});
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img" },
    marks.map((mark) => [
      s("line", { class: mark ? "grid" : "base", x1: x(mark), x2: x(mark), y1: 0, y2: bottom }),
      s("text", { x: x(mark), y: bottom + 18, "text-anchor": "middle" }, money(mark).replace(".00", ""))]).flat(),
    clients.map((one, i) => {
      const top = i * STEP + 4;
      return [
        s("text", { class: "name", x: room - 9, y: top + 11, "text-anchor": "end" }, one.client.length > letters ? `${one.client.slice(0, letters - 1)}…` : one.client),
        s("rect", { class: "f0", x: x(0), y: top, width: Math.max(x(one.paid) - x(0), 0), height: 13, rx: 2 }),
        one.returned ? s("rect", { class: "fbad", x: x(one.paid) + 1, y: top, width: Math.max(x(one.returned) - x(0) - 1, 1), height: 13, rx: 2, "fill-opacity": 0.75 }) : null,
        one.asked === null ? null : s("line", { class: "sink", "stroke-width": 2, x1: x(one.asked), x2: x(one.asked), y1: top - 2, y2: top + 15 }),
      ];
    }).flat(),
    cursor);
  const readings = clients.map((one) => ({
    x: room,
    lines: [one.client, `earned ${money(one.paid)} in ${one.won - one.void} rounds`, ...(one.asked === null ? [] : [`asked ${money(one.asked)}`]), `void ${one.void}, ${money(one.returned)} back`],
  }));
  return {
    svg,
    readings,
    cursor(index) {
      cursor.replaceChildren(...(index === null ? [] : [s("rect", { class: "line ssoft thin", x: 1, y: index * STEP + 1, width: width - 2, height: STEP - 1, rx: 4 })]));
    },
  };
}
