// A head of a grid opens its card, by mouse or key: all that was found about it, task by task, with intervals.
class Heads {
  constructor({ columns, n_rows }, tasks) {
    this.columns = new Map(columns.map((column) => [column.name, column]));
    this.tasks = tasks;
    this.rows = new Map();
    for (let row = 0; row < n_rows; row += 1) this.rows.set(`${this.at(row, "name")}|${this.at(row, "task")}`, row);
  }

  at(row, name) {
    const column = this.columns.get(name);
    return column ? valueAt(column, row) : null;
  }

  // In their order, each once.
  get names() {
    this.named ??= [...new Set([...this.rows.keys()].map((key) => key.split("|")[0]))].sort((one, other) => one.localeCompare(other, undefined, { numeric: true }));
    return this.named;
  }

  of(name, task) {
    const row = this.rows.get(`${name}|${task.name}`);
    return row === undefined ? null : (column) => this.at(row, column);
  }
}

let ofPage = null;
function headsOfPage() {
  ofPage ??= new Heads(brought("heads"), brought("tasks"));
  return ofPage;
}

// As `estimate` in words.py.
function estimate(value, low, high, clusters) {
  const digits = digitsOf(value, low, high);
  if (low === null || high === null) return `${decimal(value, digits)} (no interval${clusters === null ? "" : ": a template has a single cluster"})`;
  return `${decimal(value, digits)} [${decimal(low, digits)}, ${decimal(high, digits)}]`;
}
const measured = (of, name) => estimate(of(name), of(`${name}_low`), of(`${name}_high`), of("n_clusters"));

// What hovering over a head says.
function summary(name, task) {
  const of = headsOfPage().of(name, task);
  if (!of) return `Head ${name}, ${task.name}: not measured`;
  const lines = [`Head ${name}, ${task.name}: ${of("verdict")}${of("reason") ? ` (${of("reason")})` : ""}`];
  if (of("attention") !== null) lines.push(`attention ${decimal(of("attention"))}, best baseline ${decimal(of("attention_baseline") ?? 0)}`);
  if (of("effect") !== null) lines.push(`resampled ${measured(of, "effect")} ${task.unit}`);
  if (of("probe") !== null) lines.push(`probe ${measured(of, "probe")}`);
  return lines.join("\n");
}

// One estimate on its scale: a point, its interval, 0, and what counts.
function bar({ value, low, high, least, most, marks }) {
  const place = (number) => `${(100 * (Math.min(Math.max(number, least), most) - least)) / (most - least)}%`;
  const track = made("span", { className: "track" });
  track.setAttribute("aria-hidden", "true");
  for (const [kind, number] of marks) {
    const mark = made("span", { className: `tick ${kind}` });
    mark.style.left = place(number);
    track.append(mark);
  }
  if (low !== null && high !== null) {
    const interval = made("span", { className: "interval" });
    interval.style.left = place(low);
    interval.style.right = `calc(100% - ${place(high)})`;
    track.append(interval);
  }
  const point = made("span", { className: "point" });
  point.style.left = place(value);
  track.append(point);
  return track;
}

function evidence(of, task) {
  const rows = [];
  const add = (label, text, scale) => rows.push(made("dt", { textContent: label }), made("dd", {}, bar(scale), made("span", { textContent: text })));
  const share = { least: -1, most: 1 };
  const rest = of("attention") === null ? "" : `${SAID.size(of("attention"))} to the ${task.relation}, ${SAID.size(of("attention_baseline") ?? 0)} there`;
  if (of("excess") !== null) {
    const [value, low, high, minimum] = ["excess", "excess_low", "excess_high", "min_attention"].map(of);
    add("Attention", `${measured(of, "excess")} beyond ${of("baseline") ?? "its baseline"}: ${rest}`, { value, low, high, ...share, marks: [["zero", 0], ["least", minimum]] });
  } else if (rest) {
    rows.push(made("dt", { textContent: "Attention" }), made("dd", {}, made("span", { textContent: `not testable beyond ${of("baseline")}: ${rest}` })));
  }
  const effects = { least: -task.reach, most: task.reach };
  if (of("effect") !== null) {
    const [value, low, high, minimum] = ["effect", "effect_low", "effect_high", "min_effect"].map(of);
    const right = of("accuracy_ablated") === null ? "" : `; accuracy from ${decimal(of("accuracy_base"))} to ${decimal(of("accuracy_ablated"))}`;
    const mean = of("mean_effect") === null ? "" : `; ${measured(of, "mean_effect")} with its ${of("mean_replacement").replace("_", " ")}`;
    add("Ablation", `${measured(of, "effect")} ${task.unit} when resampled${right}${mean}`, { value, low, high, ...effects, marks: [["zero", 0], ["least", -minimum], ["least", minimum]] });
  }
  if (of("exchange") !== null) {
    const [value, low, high, minimum] = ["exchange", "exchange_low", "exchange_high", "min_exchange"].map(of);
    add(`The ${task.relation} exchanged`, `${measured(of, "exchange")} ${task.unit}, for this head alone`, { value, low, high, ...effects, marks: [["zero", 0], ["least", -minimum], ["least", minimum]] });
  }
  if (of("probe") !== null) {
    const [value, low, high, control] = ["probe", "probe_low", "probe_high", "probe_baseline_score"].map(of);
    add(`Probe for ${of("feature")}`, `${measured(of, "probe")} right; toughest control (${of("probe_baseline")}) ${decimal(control)}`, { value, low, high, least: 0, most: 1, marks: [["least", control]] });
  }
  return made("dl", { className: "bars" }, ...rows);
}

const BARS = "In a bar, the point is the estimate, the thick line its 95 % interval, the thin line 0; dashed is the smallest effect that counts, for a probe its toughest control.";

class Card {
  constructor(cards) {
    this.cards = cards;
    this.title = made("h2", { id: "card-title" });
    this.body = made("div", {});
    const buttons = [["← Previous", -1], ["Next →", 1]].map(([text, step]) => {
      const button = made("button", { type: "button", textContent: text });
      button.addEventListener("click", () => this.show(this.neighbour(step)));
      return button;
    });
    const close = made("button", { type: "button", textContent: "Close" });
    close.addEventListener("click", () => this.dialog.close());
    this.dialog = made("dialog", { className: "card" }, made("div", { className: "tools" }, this.title, ...buttons, close), this.body);
    this.dialog.setAttribute("aria-labelledby", "card-title");
    // A click beside the card closes it.
    this.dialog.addEventListener("click", (event) => event.target === this.dialog && this.dialog.close());
    this.dialog.addEventListener("close", () => this.leave());
    document.body.append(this.dialog);
  }

  leave() {  // the event comes late: by then the address may name the next head, and that card may be open
    const left = !this.dialog.open && location.hash === `#head-${this.name}`;
    if (left) history.replaceState(null, "", location.pathname + location.search);
  }

  neighbour(step) {
    const { names } = headsOfPage();
    return names[(names.indexOf(this.name) + step + names.length) % names.length];
  }

  show(name, first = null) {
    this.name = name;
    this.title.textContent = `Head ${name}`;
    const tasks = headsOfPage().tasks;
    const sections = tasks.map((task, number) => this.section(task, number));
    const full = this.cards.includes(name) ? [made("p", {}, made("a", { href: `cards/${name}.html`, textContent: "The whole card: replacements, halves, patching, direct paths and circuits" }))] : [];
    this.body.replaceChildren(...full, made("p", { className: "note", textContent: BARS }), ...sections);
    if (!this.dialog.open) this.dialog.showModal();
    this.dialog.scrollTop = 0;
    if (first !== null) sections[first].scrollIntoView({ block: "nearest" });
    history.replaceState(null, "", `#head-${name}`);
  }

  section(task, number) {
    const of = headsOfPage().of(this.name, task);
    if (!of) return made("section", {}, made("h3", { textContent: `${task.name}: not measured` }));
    const verdict = task.verdicts[of("verdict")];
    const symbol = made("span", { className: `symbol ${verdict.slug}`, textContent: verdict.symbol });
    symbol.setAttribute("aria-hidden", "true");
    const says = of("sentence") ? [made("p", { textContent: of("sentence") })] : [];
    const place = /\bposition \d+/.exec(of("baseline") ?? "");
    const note = place ? [made("p", { className: "note", textContent: brought("place").replace("{place}", place[0]) })] : [];
    const figure = brought("attention").figures[number];
    const looks = made("div", {});
    const section = made("section", {}, made("h3", {}, symbol, ` ${task.name}: ${of("verdict")}`), ...says, evidence(of, task), ...note, looks);
    if (figure?.heads.some((head) => head.name === this.name)) new AttentionFigure(looks, figure, [this.name]);
    return section;
  }
}

function startHeads() {
  const grids = document.querySelectorAll("table[data-task]");
  if (!grids.length) return;
  let card = null;
  const open = (name, task) => {
    card ??= new Card(brought("cards"));
    card.show(name, task);
  };
  for (const grid of grids) {
    const names = (cell) => `${grid.dataset.layers.split(" ")[cell.parentElement.sectionRowIndex]}.${grid.dataset.heads.split(" ")[cell.cellIndex - 1]}`;
    const task = Number(grid.dataset.task);
    grid.setAttribute("role", "grid");
    const moveTo = roving(grid, grid.tBodies[0].rows[0].cells[1], inTable);
    grid.addEventListener("click", (event) => {
      const cell = event.target.closest("td");
      if (!cell) return;
      moveTo(cell);
      cell.focus();
      open(names(cell), task);
    });
    grid.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      open(names(event.target.closest("td")), task);
    });
    const tell = (event) => {
      const cell = event.target.closest("td");
      if (cell && !cell.title) cell.title = summary(names(cell), headsOfPage().tasks[task]);
    };
    grid.addEventListener("pointerover", tell);
    grid.addEventListener("focusin", tell);
  }
  const openAsked = () => {
    const asked = /^#head-(\d+\.\d+)$/.exec(location.hash);
    if (asked && headsOfPage().names.includes(asked[1])) open(asked[1], null);
  };
  openAsked();
  window.addEventListener("hashchange", openAsked);
}

startHeads();
