// The list of runs.

import { ask, count, get, h, needing, moneyIn, named, percent, s } from "./dom.js";
import { extent, scale } from "./scales.js";

const MOST = 8;
const ticked = new Set();

const address = (name) => `/runs/${name.split("/").map(encodeURIComponent).join("/")}`;

function spark(values) {
  const x = scale([0, Math.max(values.length - 1, 1)], [2, 158]);
  const y = scale(extent(values, { zero: true }), [32, 2]);
  const points = values.map((value, i) => `${x(i).toFixed(1)},${y(value).toFixed(1)}`).join("L");
  return s("svg", { viewBox: "0 0 160 34", preserveAspectRatio: "none", "aria-hidden": "true" }, values.length ? s("path", { class: "line s0 thin", "vector-effect": "non-scaling-stroke", d: `M${points}` }) : null);
}

function row(run) {
  const box = h("input", { type: "checkbox", "aria-label": `Compare ${run.run}`, onchange: () => tick(run.name, box.checked) });
  box.checked = ticked.has(run.name);
  box.disabled = Boolean(run.error);
  const what = h("div", {}, h("a", { href: address(run.name) }, named(run.run)), run.error ? null : h("span", { class: "small" }, `${run.allocator} on ${run.mechanism} · ${run.dataset} · seed ${run.seed}`));
  if (run.error) return h("li", { class: "run" }, box, what, h("p", { class: "error" }, run.error));
  const { glance: g } = run;
  const money = moneyIn(run.currency);
  const [need] = run.state.needs;
  const state = h("span", { class: "state", "data-word": run.state.word, title: run.state.ended ?? need?.text ?? run.state.resume }, need && run.state.word !== "finished" ? `${run.state.word}, ${needing(run.state.needs.length)}` : run.state.word);
  return h("li", { class: "run" }, box, what, spark(run.spark),
    h("div", {}, h("b", {}, percent(g.accuracy)), h("span", { class: "small" }, g.forecast ? `forecast ${percent(g.forecast.accuracy)}` : `best ${percent(g.accuracy_best)}`)),
    h("div", {}, h("b", {}, money(g.spent)), h("span", { class: "small" }, `of ${money(g.budget)} in ${count(g.rounds)} rounds`), h("progress", { max: 1, value: g.spent / g.budget, "aria-label": "Part of the budget that is spent" })),
    state);
}

function tick(name, on) {
  if (on) ticked.add(name);
  else ticked.delete(name);
  const enough = ticked.size >= 2 && ticked.size <= MOST;
  get("compare").disabled = !enough;
  get("compare").textContent = ticked.size ? `Compare ${ticked.size} runs` : "Compare";
  get("what").textContent = ticked.size > MOST ? `At most ${MOST} runs can be compared at once.` : "Tick two or more runs to see them side by side.";
}

async function load() {
  const [tree, problem] = await ask("/index.json");
  if (!tree) {
    get("state").textContent = problem;
    setTimeout(load, 3000);
    return;
  }
  const focused = document.activeElement?.getAttribute("aria-label");
  get("title").replaceChildren("Runs in ", named(tree.folder));
  get("runs").replaceChildren(...tree.runs.map(row));
  if (focused) [...document.querySelectorAll("#runs input")].find((box) => box.getAttribute("aria-label") === focused)?.focus();
  const going = tree.runs.filter((run) => run.state?.word === "running").length;
  const needs = tree.runs.filter((run) => run.state && run.state.word !== "finished").reduce((sum, run) => sum + run.state.needs.length, 0);
  const runs = `${count(tree.count)} ${tree.count === 1 ? "run" : "runs"}, ${count(going)} running`;
  get("state").textContent = tree.runs.length ? [runs, needing(needs)].filter(Boolean).join(" · ") : "no run is here yet";
  get("state").dataset.word = going ? "running" : "finished";
  setTimeout(load, going ? 3000 : 10_000);
}

get("compare").addEventListener("click", () => {
  location.assign(`/compare?${new URLSearchParams([...ticked].map((name) => ["run", name]))}`);
});
load();
