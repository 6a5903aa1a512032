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

// Numbers read as words.py has them. Of two that are as near, the even one, as Python rounds; no minus before 0.
function decimal(number, digits = 2) {
  let text = number.toFixed(digits);
  const isTie = /^50*$/.test(number.toFixed(60).split(".")[1]?.slice(digits));
  if (isTie && text.at(-1) % 2) text = (Math.trunc(number * 10 ** digits) / 10 ** digits).toFixed(digits);
  return text.replace(/^-(0\.?0*)$/, "$1");
}

// Two decimals; more where all numbers would read as 0.
function digitsOf(...numbers) {
  const largest = Math.max(...numbers.map((number) => Math.abs(number ?? 0)));
  return largest >= 0.0001 && largest < 0.005 ? 1 - Math.floor(Math.log10(largest)) : 2;
}

const SAID = {
  count: (number) => number.toLocaleString("en-US", { maximumFractionDigits: 0 }),
  p: (number) => (number < 0.00005 ? "< 0.0001" : decimal(number, number < 0.001 ? 4 : 3)),
  size: (number) => decimal(number, digitsOf(number)),
};

function made(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}
