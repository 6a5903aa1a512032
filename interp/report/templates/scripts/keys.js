// Tab enters a group and leaves it; arrow keys move within (WAI-ARIA's roving tabindex).
function roving(group, first, neighbour) {
  let current = first;
  const moveTo = (next) => {
    current.tabIndex = -1;
    next.tabIndex = 0;
    current = next;
  };
  first.tabIndex = 0;
  group.addEventListener("keydown", (event) => {
    const next = neighbour(current, event.key);
    if (!next) return;
    event.preventDefault();
    moveTo(next);
    next.focus();
  });
  return moveTo;
}

function inTable(cell, key) {
  const row = cell.parentElement;
  const up = { ArrowUp: row.previousElementSibling, ArrowDown: row.nextElementSibling }[key];
  if (up) return up.cells[cell.cellIndex];
  const beside = { ArrowLeft: cell.previousElementSibling, ArrowRight: cell.nextElementSibling, Home: row.cells[1], End: row.lastElementChild };
  const next = beside[key];
  return next?.matches("td") ? next : null;
}

function inLine(word, key) {
  return { ArrowLeft: word.previousElementSibling, ArrowRight: word.nextElementSibling, Home: word.parentElement.firstElementChild, End: word.parentElement.lastElementChild }[key];
}
