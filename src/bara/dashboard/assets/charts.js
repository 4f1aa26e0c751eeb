// Figures: lines, bands, bars and dots over two axes, with a cursor for pointer and keyboard, and a table behind.

import { count, download, h, number, s, table } from "./dom.js";
import { extent, scale, ticks } from "./scales.js";

const PAINT = ["stroke", "fill", "stroke-width", "stroke-dasharray", "stroke-opacity", "fill-opacity", "stroke-linejoin", "stroke-linecap", "paint-order", "font-size", "font-family", "font-weight"];

/** A figure in its place on the page. `draw` takes what to show; see `Plot` for the words. */
export class Figure {
  constructor(host, title) {
    this.title = title;
    this.plot = h("div", { class: "plot", tabindex: "0", role: "group", onkeydown: (event) => this.key(event) });
    this.legend = h("ul", { class: "legend" });
    this.caption = h("figcaption", {});
    this.reading = h("p", { class: "unseen", "aria-live": "polite" });
    this.tip = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
    this.rows = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${title}: table`, hidden: true });
    this.toggle = h("button", { type: "button", "aria-expanded": "false", "aria-label": `${title}: show as a table`, onclick: () => this.showTable() }, "Table");
    this.heading = h("h3", {}, title);
    const save = (kind, does) => h("button", { type: "button", "aria-label": `${title}: download as ${kind}`, onclick: does }, kind);
    host.replaceChildren(
      h("header", {}, this.heading, h("div", { class: "tools" }, this.toggle, save("SVG", () => this.saveSvg()), save("CSV", () => this.saveCsv()))),
      this.caption, this.legend, this.plot, this.tip, this.reading, this.rows);
    this.plot.addEventListener("pointermove", (event) => this.point(event));
    this.plot.addEventListener("pointerleave", () => this.read(null));
    this.plot.addEventListener("blur", () => this.read(null));
    new ResizeObserver(() => this.redraw()).observe(this.plot);
  }

  rename(title) {
    this.title = title;
    this.heading.textContent = title;
  }

  draw(spec) {
    this.spec = spec;
    this.redraw();
  }

  redraw() {
    const { spec } = this;
    const width = this.plot.clientWidth;
    if (!spec || !width) return;
    this.caption.textContent = spec.caption ?? "";
    this.at = null;
    this.tip.hidden = true;
    if (spec.empty) {
      this.drawing = null;
      this.plot.setAttribute("aria-label", `${this.title}: ${spec.empty}`);
      this.legend.replaceChildren();
      this.plot.replaceChildren(h("p", { class: "empty" }, spec.empty));
      return;
    }
    this.drawing = spec.drawing ? spec.drawing(spec, width) : new Plot(spec, width);
    this.plot.setAttribute("aria-label", `${this.title}. ${spec.words ?? ""} Left and right arrow keys read the values.`);
    this.drawing.svg.setAttribute("aria-hidden", "true");
    this.plot.replaceChildren(this.drawing.svg);
    this.legend.replaceChildren(...(spec.series.length > 1 || spec.legend ? spec.series.filter((one) => one.name).map(key) : []));
    if (!this.rows.hidden) this.fillTable();
  }

  point(event) {
    if (this.drawing?.nearest) this.read(this.drawing.nearest(event.clientX - this.plot.getBoundingClientRect().left));
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !this.drawing?.readings) return;
    event.preventDefault();
    const last = this.drawing.readings.length - 1;
    this.read(Math.min(Math.max((this.at ?? (step > 0 ? -1 : last + 1)) + step, 0), last), true);
  }

  read(index, aloud = false) {
    this.at = index;
    this.drawing?.cursor?.(index);
    this.tip.hidden = index === null || !this.drawing?.readings?.length;
    if (this.tip.hidden) return;
    const { x, lines } = this.drawing.readings[index];
    this.tip.replaceChildren(...lines.map((line) => h("div", {}, line)));
    const left = this.plot.offsetLeft + x;
    this.tip.style.top = `${this.plot.offsetTop + 4}px`;
    this.tip.style.left = left > this.plot.clientWidth / 2 ? "auto" : `${left + 12}px`;
    this.tip.style.right = left > this.plot.clientWidth / 2 ? `${this.plot.parentElement.clientWidth - left + 12}px` : "auto";
    if (aloud) this.reading.textContent = lines.join(", ");
  }

  showTable() {
    this.rows.hidden = !this.rows.hidden;
    this.toggle.setAttribute("aria-expanded", String(!this.rows.hidden));
    if (!this.rows.hidden) this.fillTable();
  }

  fillTable() {
    const { columns, rows } = this.spec.table;
    this.rows.replaceChildren(table(columns, rows, this.title));
  }

  saveCsv() {
    if (!this.spec?.table) return;
    const { columns, rows } = this.spec.table;
    const quote = (value) => {
      const text = String(value ?? "");
      const inert = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
      return /[",\n\r]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert;
    };
    const lines = [columns.map((c) => quote(c.label)), ...rows.map((row) => columns.map((c) => quote(row[c.key])))];
    download(`${file(this.title)}.csv`, "text/csv", `${lines.map((line) => line.join(",")).join("\n")}\n`);
  }

  saveSvg() {
    if (!this.drawing) return;
    const original = this.drawing.svg;
    const copy = original.cloneNode(true);
    const paint = (from, to) => {
      const style = getComputedStyle(from);
      for (const property of PAINT) to.setAttribute(property, style.getPropertyValue(property));
      to.removeAttribute("class");
      [...from.children].forEach((child, i) => paint(child, to.children[i]));
    };
    [...original.children].forEach((child, i) => paint(child, copy.children[i]));
    const [, , width, height] = original.getAttribute("viewBox").split(" ");
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    const paper = getComputedStyle(this.plot.parentElement).backgroundColor;
    copy.prepend(s("title", {}, this.title), s("rect", { width, height, fill: paper }));
    download(`${file(this.title)}.svg`, "image/svg+xml", new XMLSerializer().serializeToString(copy));
  }
}

const file = (title) => title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");

function key(one) {
  const mark = one.kind === "band" || one.kind === "bars"
    ? s("rect", { width: 14, height: 10, class: `f${one.colour} ${one.kind === "band" ? "band" : ""}` })
    : s("line", { x2: 14, y1: 5, y2: 5, class: `line s${one.colour} ${one.look ?? ""}` });
  return h("li", {}, s("svg", { width: 14, height: 10, "aria-hidden": "true" }, mark), h("span", { title: one.name }, one.name));
}

/**
 * One drawing. A spec has x and y ({label, format, zero, min, max}), series ({name, kind, colour, look, xs, ys, lows})
 * of kind line, step, band (from lows to ys), bars (from lows or the axis) or dots, marks ({x, y, text}) and words.
 */
class Plot {
  constructor(spec, width) {
    const height = spec.height ?? (width < 420 ? 190 : 230);
    const { x, y, series } = spec;
    const parts = width < 420 ? 3 : 5;
    const yDomain = extent(series.flatMap((one) => [...one.ys, ...(one.lows ?? [])]), y);
    const xDomain = extent(series.flatMap((one) => one.xs), x, parts);
    const yMarks = ticks(...yDomain);
    const left = 10 + 6.8 * Math.max(...yMarks.map((mark) => (y.format ?? number)(mark).length));
    const [right, top, bottom] = [width - (spec.right ?? 14), 14, height - 34];
    this.spec = spec;
    this.x = scale(xDomain, [left, right]);
    this.y = scale(yDomain, [bottom, top]);
    this.bottom = bottom;
    const floor = this.y(Math.max(yDomain[0], 0));
    const xMarks = ticks(...xDomain, parts).filter((mark) => x.format !== count || Number.isInteger(mark));
    this.moving = s("g", {});
    this.svg = s("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img" },
      yMarks.map((mark) => [
        s("line", { class: mark === 0 ? "base" : "grid", x1: left, x2: right, y1: this.y(mark), y2: this.y(mark) }),
        s("text", { x: left - 7, y: this.y(mark) + 4, "text-anchor": "end" }, (y.format ?? number)(mark))]).flat(),
      xMarks.map((mark) => s("text", { x: this.x(mark), y: bottom + 16, "text-anchor": "middle" }, (x.format ?? number)(mark))),
      s("text", { x: right, y: height - 3, "text-anchor": "end" }, x.label),
      series.map((one) => this.draw(one, floor, right - left)).flat(),
      (spec.marks ?? []).map((mark) => this.mark(mark, left, right)).flat(),
      this.moving);
    this.readings = this.read();
  }

  draw(one, floor, room) {
    const points = one.xs.map((x, i) => [this.x(x), one.ys[i], one.lows?.[i]]).filter(([, y]) => y !== null && y !== undefined);
    const place = ([x, y]) => `${x.toFixed(1)},${this.y(y).toFixed(1)}`;
    const className = `s${one.colour} ${one.look ?? ""}`;
    if (!points.length) return [];
    if (one.kind === "band") {
      const back = [...points].reverse().map(([x, , low]) => place([x, low]));
      return [s("path", { class: `band f${one.colour}`, d: `M${[...points.map(place), ...back].join("L")}Z` })];
    }
    if (one.kind === "bars") {
      const thick = Math.max(Math.min((room / one.xs.length) * 0.72, 18), 1);
      const d = points.map(([x, y, low]) => `M${x.toFixed(1)},${(low === undefined ? floor : this.y(low)).toFixed(1)}V${this.y(y).toFixed(1)}`);
      return [s("path", { class: className, "stroke-width": thick.toFixed(1), fill: "none", d: d.join("") })];
    }
    if (one.kind === "dots") return points.map((point) => s("circle", { class: `dot f${one.colour}`, cx: point[0], cy: this.y(point[1]), r: 3.5 }));
    const joined = one.kind === "step" ? points.map((point, i) => (i ? `H${point[0].toFixed(1)}V${this.y(point[1]).toFixed(1)}` : place(point))).join("") : points.map(place).join("L");
    return [s("path", { class: `line ${className}`, d: `M${joined}` })];
  }

  mark({ x, y, text, colour = "ink" }, left, right) {
    const [px, py] = [this.x(x), this.y(y)];
    const anchor = px > right - 60 ? "end" : px < left + 60 ? "start" : "middle";
    const above = py > 34;
    return [s("circle", { class: `dot f${colour}`, cx: px, cy: py, r: 5.5 }),
      text && s("text", { class: "strong", x: px + { end: 4, start: -4, middle: 0 }[anchor], y: above ? py - 12 : py + 22, "text-anchor": anchor }, text)];
  }

  /** What stands at each x of the first series that is read. */
  read() {
    const { x, y, series } = this.spec;
    const read = series.filter((one) => one.name && one.kind !== "band" && one.read !== false);
    const lead = read.reduce((best, one) => (one.xs.length > (best?.xs.length ?? 0) ? one : best), null);
    if (!lead) return [];
    const places = read.map((one) => new Map(one.xs.map((value, i) => [value, i])));
    return lead.xs.map((value) => ({
      x: this.x(value),
      lines: [`${x.name ?? x.label} ${(x.format ?? number)(value)}`, ...read.map((one, k) => {
        const i = places[k].get(value) ?? closest(one.xs, value);
        return i === null || one.ys[i] === null ? null : `${one.name} ${(one.format ?? y.format ?? number)(one.values?.[i] ?? one.ys[i])}`;
      }).filter(Boolean)],
    }));
  }

  nearest(px) {
    let best = null;
    this.readings.forEach(({ x }, i) => {
      if (best === null || Math.abs(x - px) < Math.abs(this.readings[best].x - px)) best = i;
    });
    return best;
  }

  cursor(index) {
    const at = index === null ? null : this.readings[index];
    this.moving.replaceChildren(...(at ? [s("line", { class: "cursor", x1: at.x, x2: at.x, y1: 10, y2: this.bottom })] : []));
  }
}

/** The position whose x comes last before or at the value; null where there is none. */
function closest(xs, value) {
  let [low, high] = [0, xs.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low ? low - 1 : null;
}
