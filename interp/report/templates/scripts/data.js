// What the page brings along as JSON is read when somebody asks for it, and once.
const known = new Map();

function brought(id) {
  if (!known.has(id)) {
    const element = document.getElementById(id);
    known.set(id, element ? JSON.parse(element.textContent) : null);
  }
  return known.get(id);
}

// The value of one column at one row; of text that repeats, the column holds each once.
function valueAt(column, row) {
  return column.of ? column.of[column.at[row]] : column.values[row];
}

// Three decimals; scientific where that would read as 0. As the tables that come with the page.
function shortNumber(number) {
  if (number !== 0 && Math.abs(number) < 0.0005) return number.toExponential(1).replace(/e([+-])(\d)$/, "e$10$2");
  return (number === 0 ? 0 : number).toFixed(3);
}

function made(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}
