// Tables are sorted by their headings, filtered, and taken along as CSV. Of very many rows the first are shown.
const ROWS = 200;
const LONG = 30;
const MISSING = { text: "—", key: "" };

class SortableTable {
  constructor(table) {
    this.table = table;
    this.order = null; // [column, direction]
    this.words = [];
    this.limit = ROWS;
    this.headings = [...table.tHead.rows[0].cells];
    this.headings.forEach((heading, column) => this.makeSortable(heading, column));
    this.addTools();
  }

  // Rows of {text, key}; a number has a key, which it sorts by. Read when first needed.
  get rows() {
    this.read ??= this.table.dataset.rows ? this.broughtRows() : this.ownRows();
    return this.read;
  }

  broughtRows() {
    const { columns, n_rows } = brought(this.table.dataset.rows);
    this.all = columns;
    const shown = columns.filter((column) => column.shown);
    return Array.from({ length: n_rows }, (_, row) => ({ row, cells: shown.map((column) => broughtCell(column, row)) }));
  }

  ownRows() {
    return [...this.table.tBodies[0].rows].map((element, row) => ({
      row,
      cells: [...element.cells].map((cell) => ({ text: cell.textContent, key: cell.dataset.key ?? "" })),
    }));
  }

  makeSortable(heading, column) {
    if (!heading.textContent.trim()) return; // a column of marks
    const button = made("button", { type: "button", textContent: heading.textContent });
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      this.headings.forEach((each) => each.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      this.order = [column, down ? -1 : 1];
      this.draw();
    });
  }

  addTools() {
    const name = this.table.caption.textContent;
    this.count = made("span", { className: "count" });
    this.count.setAttribute("role", "status");
    this.more = made("button", { type: "button", hidden: true });
    this.more.addEventListener("click", () => {
      this.limit = Infinity;
      this.draw();
    });
    const filter = made("input", { type: "search", placeholder: "words that a row must hold" });
    filter.addEventListener("input", () => {
      this.words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      this.draw();
    });
    filter.setAttribute("aria-label", `Filter: ${name}`);
    const csv = made("button", { type: "button", textContent: "Download CSV" });
    csv.setAttribute("aria-label", `Download CSV: ${name}`);
    csv.addEventListener("click", () => this.download(name));
    const label = made("label", {}, "Filter ", filter);
    this.table.parentElement.before(made("div", { className: "tools" }, label, csv, this.count, this.more));
  }

  chosen() {
    const held = ({ cells }) => {
      const text = cells.map((cell) => cell.text).join(" ").toLowerCase();
      return this.words.every((word) => text.includes(word));
    };
    const rows = this.words.length ? this.rows.filter(held) : [...this.rows];
    if (this.order) {
      const [column, direction] = this.order;
      rows.sort((one, other) => compare(one.cells[column], other.cells[column], direction));
    }
    return rows;
  }

  draw() {
    const rows = this.chosen();
    const shown = rows.slice(0, this.limit);
    this.table.tBodies[0].replaceChildren(...shown.map(({ cells }) => rowOf(cells)));
    this.count.textContent = `${rows.length} of ${this.rows.length} rows${shown.length < rows.length ? `, ${shown.length} shown` : ""}`;
    this.more.hidden = shown.length === rows.length;
    this.more.textContent = `Show all ${rows.length}`;
  }

  // What the filter leaves, in the order of the table, with every digit.
  download(name) {
    const rows = this.chosen();
    const columns = this.all ?? this.headings.map((heading) => ({ name: heading.textContent }));
    const value = ({ row, cells }, column, number) => {
      if (this.all) return valueAt(column, row) ?? "";
      return cells[number].key || (cells[number].text === MISSING.text ? "" : cells[number].text);
    };
    const lines = [columns.map((column) => column.name), ...rows.map((row) => columns.map((...at) => value(row, ...at)))];
    const text = lines.map((line) => line.map(quoted).join(",")).join("\r\n") + "\r\n";
    const link = made("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })) });
    link.download = `${name.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60)}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
}

function broughtCell(column, row) {
  const value = valueAt(column, row);
  if (value === null || value === "") return MISSING;
  if (typeof value === "string") return { text: value, key: "" };
  return { text: SAID[column.kind](value), key: String(value) };
}

function rowOf(cells) {
  return made("tr", {}, ...cells.map(({ text, key }, column) => {
    const cell = made(column ? "td" : "th", { textContent: text });
    if (!column) cell.scope = "row";
    if (key && column) {
      cell.className = "number";
      cell.dataset.key = key;
    } else if (text.length > LONG) cell.className = "long";
    return cell;
  }));
}

// Missing values stay last, whichever way round.
function compare(one, other, direction) {
  const missing = (one.text === MISSING.text) - (other.text === MISSING.text);
  if (missing) return missing;
  if (one.key && other.key) return direction * (one.key - other.key);
  // Numeric: head 10.2 comes after 2.3.
  return direction * one.text.localeCompare(other.text, undefined, { numeric: true });
}

function quoted(value) {
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

for (const table of document.querySelectorAll("table.sortable")) new SortableTable(table);
