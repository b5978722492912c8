// A list of which only what is seen is drawn. Rows have one height, or that and the height of a heading above them, so that the place of each is known without drawing it.
//
// What changes above the first row that is seen moves nothing: the list is scrolled along.

import { el } from "./dom.js";

const ROOM = 6;

export class VirtualList {
  /** `draw(index, node)` fills the node of a row; `heads(index)` tells whether a heading stands above it. */
  constructor({ rowHeight, headHeight, draw, heads, key, seen }) {
    Object.assign(this, { rowHeight, headHeight, draw, heads, key, seen });
    this.length = 0;
    this.above = new Int32Array(1);
    this.nodes = new Map();
    this.body = el("div.rows", { role: "list" });
    this.scroller = el("div.scroller", { on: { scroll: () => this.later() } }, this.body);
    new ResizeObserver(() => this.later()).observe(this.scroller);
  }

  /** The first pixel of a row, its heading included. */
  top(index) {
    return index * this.rowHeight + this.above[Math.min(index, this.length)] * this.headHeight;
  }

  /** The row at a pixel. */
  at(pixel) {
    let [low, high] = [0, Math.max(0, this.length - 1)];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.top(middle) <= pixel) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Takes over a new state of the rows. `added` says at which indexes rows came in since: what is seen stays where it is, unless `follow`.
   * Rows before `from` are as they were. */
  refresh(length, { added = [], follow = false, from = 0 } = {}) {
    const { scrollTop } = this.scroller;
    let first = this.length ? this.at(scrollTop) : 0;
    const into = this.length ? scrollTop - this.top(first) : 0;
    for (const index of added) if (index <= first) first += 1;
    this.length = length;
    if (this.above.length < length + 1) {
      const longer = new Int32Array(Math.max(length + 1, this.above.length * 2));
      longer.set(this.above);
      this.above = longer;
    }
    for (let index = from; index < length; index += 1) {
      this.above[index + 1] = this.above[index] + (this.heads(index) ? 1 : 0);
    }
    this.body.style.height = `${this.top(length)}px`;
    if (!follow && first < length) {
      const wanted = this.top(first) + into;
      if (Math.abs(this.scroller.scrollTop - wanted) > 0.5) this.scroller.scrollTop = wanted;
    }
    this.redraw = true;
    this.show();
  }

  /** Draws in the next frame. */
  later() {
    this.frame ??= requestAnimationFrame(() => { this.frame = null; this.show(); });
  }

  show() {
    const { scrollTop, clientHeight } = this.scroller;
    const first = Math.max(0, this.at(scrollTop) - ROOM);
    const last = Math.min(this.length, this.at(scrollTop + clientHeight) + 1 + ROOM);
    const used = new Map();
    const free = [];
    const wanted = new Map();
    for (let index = first; index < last; index += 1) wanted.set(this.key(index), index);
    for (const [key, node] of this.nodes) if (!wanted.has(key)) free.push(node);
    let before = null;
    for (const [key, index] of wanted) {
      let node = this.nodes.get(key);
      const is_new = !node;
      if (is_new) {
        // A row that has the focus is not made into another one.
        const at = free.findIndex((other) => !other.contains(document.activeElement));
        node = at >= 0 ? free.splice(at, 1)[0] : el("div.row", { role: "listitem" });
      }
      if (is_new || this.redraw) this.draw(index, node);
      const top = this.top(index);
      if (node.topPixel !== top) { node.style.transform = `translateY(${top}px)`; node.topPixel = top; }
      // In the order of the list, for who reads or tabs through it.
      const place = before ? before.nextSibling : this.body.firstChild;
      if (node !== place) this.body.insertBefore(node, place);
      before = node;
      used.set(key, node);
    }
    for (const node of free) node.remove();
    for (const node of [...this.body.children]) if (![...used.values()].includes(node)) node.remove();
    this.nodes = used;
    this.redraw = false;
    this.seen?.(first, last);
  }

  /** Scrolls just so far that a row is seen. */
  reveal(index) {
    const { scrollTop, clientHeight } = this.scroller;
    const top = this.top(index);
    const bottom = this.top(index + 1);
    if (top < scrollTop) this.scroller.scrollTop = top;
    else if (bottom > scrollTop + clientHeight) this.scroller.scrollTop = bottom - clientHeight;
    this.show();
  }
}
