"use strict";
// A click on a column's heading sorts by it; a second click turns the order round. Missing values stay last.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = heading.textContent;
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      headings.forEach((each) => each.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].map((row) => [row, row.cells[column]]);
      rows.sort(([, one], [, other]) => compare(one, other, down ? -1 : 1));
      body.replaceChildren(...rows.map(([row]) => row));
    });
  });
}

function compare(one, other, direction) {
  const missing = (one.textContent === "—") - (other.textContent === "—");
  if (missing) return missing;
  if (one.dataset.key && other.dataset.key) return direction * (one.dataset.key - other.dataset.key);
  return direction * one.textContent.localeCompare(other.textContent);
}
