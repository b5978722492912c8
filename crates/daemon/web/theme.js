// Light, dark, or as the system has it.

import { kept, keep } from "./keep.js";
import { svg, put } from "./dom.js";

const NAMES = { system: "as the system", light: "light", dark: "dark" };
const DRAWN = {
  system: ["M12 3a9 9 0 1 0 0 18z", "M12 3a9 9 0 0 1 0 18"],
  light: ["M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8z", "M12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M5.3 18.7l1.4-1.4M17.3 6.7l1.4-1.4"],
  dark: ["M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z", ""],
};

/** Puts the chosen theme on, and makes the button that changes it. */
export function themes(button) {
  let theme = kept("theme");
  if (!(theme in NAMES)) theme = "system";
  const show = () => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    const [whole, line] = DRAWN[theme];
    put(button, svg("svg", { viewBox: "0 0 24 24", width: 18, height: 18, "aria-hidden": "true" },
      svg("path", { d: whole, fill: "currentColor" }),
      svg("path", { d: line, fill: "none", stroke: "currentColor", "stroke-width": 1.8, "stroke-linecap": "round" })));
    button.setAttribute("aria-label", `Theme: ${NAMES[theme]}`);
    button.title = `Theme: ${NAMES[theme]}`;
  };
  button.addEventListener("click", () => {
    const names = Object.keys(NAMES);
    theme = names[(names.indexOf(theme) + 1) % names.length];
    keep("theme", theme);
    show();
  });
  show();
}
