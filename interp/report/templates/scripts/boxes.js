// A box that is narrower than what it holds says so, until it has been scrolled to the end.
function watch(box) {
  const look = () => {
    box.classList.toggle("wider", box.scrollWidth > box.clientWidth + 1);
    box.classList.toggle("end", box.scrollLeft + box.clientWidth >= box.scrollWidth - 1);
  };
  box.addEventListener("scroll", look, { passive: true });
  new ResizeObserver(look).observe(box);
}

document.querySelectorAll(".scroll").forEach(watch);

// Paper cannot be clicked.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => (each.open = true)));
