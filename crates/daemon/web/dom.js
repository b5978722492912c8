// Elements, made of names and text. Nothing here reads markup, so that no name of a file or of an agent can become any.

const SVG = "http://www.w3.org/2000/svg";

/** Makes an element: `el("p.note", {title: "x"}, "text", child)`. Of a child that is null or false nothing is made. */
export function el(name, attributes, ...children) {
  const [tag, ...classes] = name.split(".");
  const made = document.createElement(tag || "div");
  if (classes.length) made.className = classes.join(" ");
  return fill(made, attributes, children);
}

/** The same in SVG. */
export function svg(name, attributes, ...children) {
  const [tag, ...classes] = name.split(".");
  const made = document.createElementNS(SVG, tag);
  if (classes.length) made.setAttribute("class", classes.join(" "));
  return fill(made, attributes, children);
}

function fill(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "on") for (const [event, act] of Object.entries(value)) made.addEventListener(event, act);
    else if (key === "data") Object.assign(made.dataset, value);
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  append(made, children);
  return made;
}

function append(parent, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Puts these children in the place of all that an element has. */
export function put(parent, ...children) {
  parent.replaceChildren();
  append(parent, children);
  return parent;
}

/** Text in which what stands between backticks is code, as in the messages of the program. */
export function prose(text) {
  return String(text).split("`").map((piece, index) => (index % 2 ? el("code", {}, piece) : piece));
}

/** A button. */
export function button(name, label, act, attributes = {}) {
  return el(name, { type: "button", ...attributes, on: { click: act } }, label);
}

/** Says something to who listens instead of looks. */
export function say(text) {
  const place = document.getElementById("say");
  if (place) place.textContent = text;
}
