// Several runs side by side.

import { Figure } from "./charts.js";
import { ask, count, get, h, money, named, number, percent, s, setCurrency } from "./dom.js";

const LOOKS = ["", "dash"];
const figures = { accuracy: new Figure(get("accuracy"), "Metric"), n: new Figure(get("n"), "Clients per round"), left: new Figure(get("left"), "Money left") };
let runs = [];

const series = (key, axis, format) => runs.map((run, i) => ({ name: run.run, kind: "line", colour: i, look: `thin ${LOOKS[i % 2]}`, xs: run.rounds[axis], ys: run.rounds[key], format }));

function rows(key, axis) {
  return {
    columns: [{ key: "run", label: "run", name: true }, { key: "x", label: axis === "round" ? "round" : "spent", format: number }, { key: "y", label: key, format: number }],
    rows: runs.flatMap((run) => run.rounds[axis].map((x, i) => ({ run: run.run, x, y: run.rounds[key][i] }))),
  };
}

function draw() {
  const axis = document.querySelector("input[name=axis]:checked").value;
  const x = axis === "round" ? { label: "round", format: count, min: 0 } : { label: "money spent", name: "spent", format: number, min: 0 };
  const words = runs.map((run) => `${run.run} ends at ${percent(run.glance.accuracy)}`).join(", ");
  figures.accuracy.rename([...new Set(runs.map((run) => run.metric))].map((one) => one.charAt(0).toUpperCase() + one.slice(1)).join(", "));
  figures.accuracy.draw({ x, y: { zero: true, format: (value) => `${number(100 * value)} %` }, series: series("accuracy", axis, percent), height: 320, words: `${words}.`, legend: true, table: rows("accuracy", axis) });
  figures.n.draw({ x, y: { zero: true }, series: series("n", axis, count), legend: true, words: "Clients that delivered in each round.", table: rows("n", axis) });
  figures.left.draw({ x, y: { zero: true }, series: series("left", axis, money), legend: true, words: "What is left of each budget.", table: rows("left", axis) });
}

function numbers() {
  const columns = [
    ["metric", (run) => run.metric], ["reached", (run) => percent(run.glance.accuracy)], ["best round", (run) => percent(run.glance.accuracy_best)],
    ["forecast", (run) => (run.glance.forecast ? percent(run.glance.forecast.accuracy) : "–")], ["spent", (run) => money(run.glance.spent)],
    ["of", (run) => money(run.glance.budget)], ["rounds", (run) => count(run.glance.rounds)], ["failures", (run) => count(run.glance.failed)], ["state", (run) => run.state.word],
  ];
  const swatch = (i) => s("svg", { class: "swatch key", width: 18, height: 10, "aria-hidden": "true" }, s("line", { x2: 18, y1: 5, y2: 5, class: `line s${i} ${LOOKS[i % 2]}` }));
  get("table").replaceChildren(h("table", {}, h("caption", { class: "unseen" }, "The runs in numbers"),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "run"), columns.map(([label]) => h("th", { scope: "col" }, label)))),
    h("tbody", {}, runs.map((run, i) => h("tr", {},
      h("th", { scope: "row" }, swatch(i), h("a", { href: `/runs/${run.name.split("/").map(encodeURIComponent).join("/")}` }, named(run.run)), h("span", { class: "small" }, `${run.allocator} on ${run.mechanism} · ${run.dataset} · seed ${run.seed}`)),
      columns.map(([, show]) => h("td", {}, show(run))))))));
}

function verdict() {
  if (runs.length < 2) return "Tick two or more runs on the first page to see them side by side.";
  const ranked = [...runs].sort((a, b) => (b.glance.accuracy ?? 0) - (a.glance.accuracy ?? 0));
  const [best, second] = ranked;
  const points = (100 * (best.glance.accuracy - second.glance.accuracy)).toFixed(1);
  const ahead = points === "0.0" ? "level with " : `${points} points ahead of `;
  const alike = new Set(runs.map((run) => `${run.dataset} ${run.metric} ${run.glance.budget}`)).size === 1;
  return [h("b", {}, named(best.run)), ` leads with ${percent(best.glance.accuracy)} for ${money(best.glance.spent)}, ${ahead}`, named(second.run), ` (${money(second.glance.spent)}).`, alike ? "" : " Mind that data, metrics or budgets differ."];
}

async function load() {
  const [found, problem] = await ask(`/compare.json${location.search}`);
  if (!found) {
    get("verdict").textContent = problem;
    setTimeout(load, 3000);
    return;
  }
  ({ runs } = found);
  const [first, ...others] = new Set(runs.map((run) => run.currency));
  setCurrency(others.length ? null : first);
  get("verdict").replaceChildren(...[verdict()].flat());
  if (runs.length) {
    numbers();
    draw();
  }
  document.body.dataset.ready = runs.length;
  const going = runs.some((run) => run.state.word === "running");
  if (!runs.every((run) => run.state.over)) setTimeout(load, going ? 3000 : 10_000);
}

get("axis").addEventListener("change", draw);
get("twin").href = `/compare.json${location.search}`;
load();
