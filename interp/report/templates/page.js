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
  // Numeric: head 10.2 comes after 2.3.
  return direction * one.textContent.localeCompare(other.textContent, undefined, { numeric: true });
}

// A box that is narrower than its table says so, until it has been scrolled to the end.
for (const box of document.querySelectorAll(".scroll")) {
  const look = () => {
    box.classList.toggle("wider", box.scrollWidth > box.clientWidth + 1);
    box.classList.toggle("end", box.scrollLeft + box.clientWidth >= box.scrollWidth - 1);
  };
  box.addEventListener("scroll", look, { passive: true });
  new ResizeObserver(look).observe(box);
}

// Paper cannot be clicked.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => (each.open = true)));
