// Where do heads look? Choose the sentence and the heads; a word that is hovered over, focused or clicked is asked.
const DRAWN = made("template", { innerHTML: '<svg class="arcs" aria-hidden="true"></svg><svg><path><title></title></path></svg>' });
const FAINTEST = 0.02;
const ARC_HEIGHT = 96;
const SIDE_BY_SIDE = 2;
const FADED = 44; // pixels at the edge of a box that holds more: page.css fades 2.5rem

class AttentionFigure {
  constructor(place, figure, names = null) {
    this.figure = figure;
    this.sentence = 0;
    this.names = new Set(names ?? figure.heads.slice(0, SIDE_BY_SIDE).map(({ name }) => name));
    this.pinned = figure.sentences[0].query;
    this.caption = made("p", { className: "note" });
    this.panels = made("div", { className: "panels" });
    place.replaceChildren(...this.choices(names === null), this.caption, this.panels);
    this.draw();
  }

  choices(heads) {
    const select = made("select", {}, ...this.figure.sentences.map(({ tokens }, number) =>
      made("option", { value: number, textContent: readable(tokens) })));
    select.addEventListener("change", () => {
      this.sentence = Number(select.value);
      this.pinned = this.figure.sentences[this.sentence].query;
      this.draw();
    });
    const line = made("div", { className: "tools" }, made("label", {}, "Sentence ", select));
    return heads && this.figure.heads.length > 1 ? [line, this.headChoices()] : [line];
  }

  headChoices() {
    const boxes = this.figure.heads.map(({ name, verdict }) => {
      const box = made("input", { type: "checkbox", checked: this.names.has(name) });
      box.addEventListener("change", () => {
        if (box.checked) this.names.add(name);
        else this.names.delete(name);
        this.draw();
      });
      return made("label", { className: "chip", title: verdict }, box, ` ${name}`);
    });
    return made("fieldset", { className: "tools chips" }, made("legend", { textContent: "Heads, side by side" }), ...boxes);
  }

  draw() {
    const heads = this.figure.heads.filter(({ name }) => this.names.has(name));
    this.caption.textContent = this.figure.sentences[this.sentence].caption;
    this.drawn = heads.map((head) => new AttentionPanel(this, head));
    this.panels.replaceChildren(...this.drawn.map((panel) => panel.element));
    if (!heads.length) this.panels.append(made("p", { className: "note", textContent: "Choose a head." }));
    this.ask(this.pinned);
  }

  ask(query) {
    this.drawn.forEach((panel) => panel.ask(query));
  }
}

class AttentionPanel {
  constructor(owner, head) {
    const sentence = owner.figure.sentences[owner.sentence];
    this.rows = head.weights[owner.sentence];
    this.arcs = DRAWN.content.querySelector("svg").cloneNode();
    this.words = sentence.tokens.map((token, place) => wordOf(token, place, sentence));
    this.line = made("div", { className: "words" }, ...this.words);
    this.line.setAttribute("role", "group");
    this.line.setAttribute("aria-label", `Head ${head.name}: choose the word that looks`);
    this.box = made("div", { className: "scroll" }, made("div", { className: "strip" }, this.arcs, this.line));
    watch(this.box);
    const title = made("h4", {}, `Head ${head.name} `, made("span", { className: "note", textContent: head.verdict ?? "" }));
    this.element = made("div", { className: "panel" }, title, this.box);
    this.listen(owner);
    new ResizeObserver(() => this.drawArcs()).observe(this.line);
    new ResizeObserver(() => this.reveal()).observe(this.box);
  }

  listen(owner) {
    const moveTo = roving(this.line, this.words[owner.pinned], inLine);
    const wordAt = (event) => this.words.indexOf(event.target.closest(".word"));
    const preview = (event) => {
      const place = wordAt(event);
      if (this.rows[place]) owner.ask(place);
    };
    this.line.addEventListener("pointerover", preview);
    this.line.addEventListener("focusin", preview);
    this.line.addEventListener("pointerleave", () => owner.ask(owner.pinned));
    this.line.addEventListener("focusout", () => owner.ask(owner.pinned));
    this.line.addEventListener("click", (event) => {
      const place = wordAt(event);
      if (!this.rows[place]) return;
      owner.pinned = place;
      moveTo(this.words[place]);
      owner.ask(place);
    });
  }

  ask(query) {
    this.query = query;
    const { shades } = brought("attention");
    this.words.forEach((word, place) => {
      const weight = this.rows[query]?.[place] ?? null;
      const [token, number] = word.children;
      token.style.cssText = weight === null ? "" : shades[Math.round(weight * (shades.length - 1))];
      token.classList.toggle("query", place === query);
      token.classList.toggle("unmeasured", weight === null); // what comes later cannot be looked at
      number.textContent = weight === null ? "" : decimal(weight);
      word.setAttribute("aria-pressed", String(place === query));
    });
    this.drawArcs();
  }

  // Of a sentence that is longer than the window, the word that looks is in sight.
  reveal() {
    const { offsetLeft, offsetWidth } = this.words[this.query];
    this.box.scrollLeft = Math.max(0, offsetLeft + offsetWidth + FADED - this.box.clientWidth);
  }

  // From the word that looks to every word that it looks at; the wider, the more attention.
  drawArcs() {
    const width = this.line.scrollWidth;
    const row = this.rows[this.query] ?? [];
    const middle = this.words.map((word) => word.offsetLeft + word.offsetWidth / 2);
    const longest = Math.max(1, ...row.map((_, place) => Math.abs(middle[place] - middle[this.query])));
    this.arcs.setAttribute("viewBox", `0 0 ${width} ${ARC_HEIGHT}`);
    this.arcs.style.width = `${width}px`;
    this.arcs.replaceChildren(...row.flatMap((weight, place) => {
      if (weight < FAINTEST || place === this.query) return [];
      const [from, to] = [middle[this.query], middle[place]];
      const top = ARC_HEIGHT - 12 - (ARC_HEIGHT - 20) * (0.25 + (0.75 * Math.abs(to - from)) / longest) * 1.3;
      const path = DRAWN.content.querySelector("path").cloneNode(true);
      path.setAttribute("d", `M${from} ${ARC_HEIGHT} C${from} ${top} ${to} ${top} ${to} ${ARC_HEIGHT}`);
      path.setAttribute("stroke-width", String(1 + 7 * weight));
      path.setAttribute("opacity", String(0.25 + 0.75 * weight));
      path.firstElementChild.textContent = decimal(weight);
      return [path];
    }));
  }
}

function wordOf(token, place, { query, related, distractors }) {
  const shown = made("span", { className: "token", textContent: token });
  shown.classList.toggle("related", related.includes(place));
  shown.classList.toggle("distractor", distractors.includes(place));
  return made("button", { type: "button", className: "word", tabIndex: -1 }, shown, made("span", { className: "weight" }));
}

function readable(tokens) {
  return tokens.filter((token) => !/^<.*>$/.test(token)).join(" ");
}

for (const place of document.querySelectorAll("[data-attention]")) {
  const figure = brought("attention")?.figures[Number(place.dataset.attention)];
  if (figure) new AttentionFigure(place, figure);
}
