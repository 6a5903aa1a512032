// Buttons of the page as a whole: light or dark, and what is copied. Without a script there are none.
const SCHEMES = ["light dark", "dark", "light"];
const SCHEME_NAMES = { "light dark": "system", dark: "dark", light: "light" };

for (const button of document.querySelectorAll("[data-scheme]")) {
  let number = 0;
  button.addEventListener("click", () => {
    number = (number + 1) % SCHEMES.length;
    document.documentElement.style.colorScheme = SCHEMES[number];
    button.textContent = `Colours: ${SCHEME_NAMES[SCHEMES[number]]}`;
  });
}

for (const button of document.querySelectorAll("[data-copies]")) {
  const said = button.nextElementSibling;
  button.addEventListener("click", async () => {
    const texts = button.dataset.copies.split(" ").map((id) => document.getElementById(id).textContent);
    said.textContent = (await copied(`${texts.join("\n\n")}\n`)) ? "Copied." : "The browser does not allow it: select the text above.";
  });
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = made("textarea", { value: text });
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

document.documentElement.classList.add("scripted");
