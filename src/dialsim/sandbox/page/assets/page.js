// What htmx leaves to the page: focus and opened lines live through updates, and a lost server shows.
"use strict";

const callbacks = Idiomorph.defaults.callbacks;

// What arrow keys move among: the lines and buttons of a group, not what is opened in them.
const ITEM = "[data-roving] :is(summary, button, a):not(.body *, .forms *, form *)";

// What the server doesn't know stays as it is: which lines are open, what was typed or chosen and is
// not sent yet, and which item of a group Tab leads to.
const edited = new WeakSet();
callbacks.beforeAttributeUpdated = (name, node) => !(
  (name === "open" && node.tagName === "DETAILS")
  || (name === "value" && edited.has(node))
  || name === "selected"
  || (name === "tabindex" && node.matches(ITEM))
);
document.addEventListener("input", (event) => edited.add(event.target));

// A form that was taken is as it was at first; one that was refused keeps what was typed.
document.addEventListener("htmx:afterRequest", (event) => {
  const form = event.detail.elt;
  if (form.tagName !== "FORM" || !event.detail.xhr.status || event.detail.xhr.status >= 400) return;
  for (const field of form.elements) edited.delete(field);
  if (form.matches(".add")) form.reset();
});

// What was loaded into a line, and what was said of a command, stays; a line that has changed since
// loads again.
callbacks.beforeNodeMorphed = (old, fresh) => {
  if (old.nodeType !== Node.ELEMENT_NODE || !old.hasAttribute("data-kept")) return true;
  if (old.dataset.version !== fresh.dataset.version) {
    old.dataset.version = fresh.dataset.version;
    if (old.closest("details[open]")) htmx.trigger(old, "refresh");
    else old.replaceChildren();
  }
  return false;
};

// A line that is being read stays where it is; from a button that goes, focus moves to its heading.
callbacks.beforeNodeRemoved = (node) => {
  if (node.nodeType !== Node.ELEMENT_NODE) return true;
  const focused = node.contains(document.activeElement);
  if (node.matches("details.line") && (node.open || focused)) return false;
  if (focused) node.closest("article, section")?.querySelector(":is(h2, h3)[tabindex]")?.focus();
  return true;
};

// What is opened comes into view once it is there; closed, its list stands where it stood before.
const before = new WeakMap();
const opening = new WeakSet();
const show = (opened) => {
  const list = opened.closest(".lines");
  const tall = opened.offsetHeight > Math.min(list?.clientHeight || innerHeight, innerHeight);
  opened.scrollIntoView({ block: tall ? "start" : "nearest" });
};
document.addEventListener("toggle", (event) => {
  const opened = event.target;
  const body = opened.querySelector(":scope > [data-kept]");
  const list = opened.closest(".lines");
  if (!opened.open) {
    opening.delete(opened);
    if (before.has(opened)) list.scrollTop = before.get(opened);
    opened.querySelector("summary").scrollIntoView({ block: "nearest" });
    return;
  }
  if (list) before.set(opened, list.scrollTop);
  if (body && !body.childElementCount) {
    opening.add(opened);
    htmx.trigger(body, "refresh");
  } else {
    show(opened);
  }
}, true);
document.addEventListener("htmx:afterSettle", (event) => {
  const opened = event.target.closest("details");
  if (opened && opening.delete(opened)) show(opened);
});

// Of a list, or a row of buttons, Tab leads to one item; arrow keys lead to the others.
const itemsOf = (group) => [...group.querySelectorAll(ITEM)];
function rove(group, chosen) {
  const items = itemsOf(group);
  const stop = chosen ?? items.find((item) => item === document.activeElement)
    ?? items.find((item) => item.getAttribute("tabindex") === "0") ?? items[0];
  for (const item of items) item.setAttribute("tabindex", item === stop ? "0" : "-1");
}
const STEPS = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (event.key === "Escape") {
    const opened = event.target.closest("details.line[open]");
    if (!opened) return;
    opened.open = false;
    opened.querySelector("summary").focus();
  } else if (event.key in STEPS && event.target.matches(ITEM)) {
    const items = itemsOf(event.target.closest("[data-roving]"));
    const next = items.indexOf(event.target) + STEPS[event.key];
    items[Math.max(0, Math.min(next, items.length - 1))].focus();
    event.preventDefault();
  }
});
document.addEventListener("focusin", (event) => {
  if (event.target.matches(ITEM)) rove(event.target.closest("[data-roving]"), event.target);
});

// A list that is longer than its box says so.
function arrange() {
  for (const group of document.querySelectorAll("[data-roving]")) rove(group);
  for (const list of document.querySelectorAll(".lines")) {
    list.parentElement.toggleAttribute("data-scrolls", list.scrollHeight > list.clientHeight + 1);
  }
}
document.addEventListener("DOMContentLoaded", arrange);
document.addEventListener("htmx:sseMessage", arrange);
document.addEventListener("htmx:afterSettle", arrange);
document.addEventListener("toggle", arrange, true);
addEventListener("resize", arrange);

// Errors that don't come from the page's own routes are in the interface's envelope.
document.addEventListener("htmx:beforeSwap", (event) => {
  const { xhr } = event.detail;
  if (!(xhr?.getResponseHeader("Content-Type") || "").startsWith("application/json")) return;
  const alert = document.createElement("span");
  alert.setAttribute("role", "alert");
  for (const text of JSON.parse(xhr.responseText).errors) {
    const error = document.createElement("span");
    error.className = "error";
    error.textContent = text;
    alert.append(error);
  }
  event.detail.serverResponse = alert.outerHTML;
});

function say(text) {
  const notice = document.getElementById("connection");
  if (notice.textContent !== text) notice.textContent = text;
}
const LOST = "Connection lost. Trying again …";
document.addEventListener("htmx:sseError", () => say(LOST));
document.addEventListener("htmx:sendError", () => say(LOST));
document.addEventListener("htmx:sseOpen", () => say(""));

// A choice in a form of filters is a new address at once.
document.addEventListener("change", (event) => {
  if (event.target.matches("form.choose select")) event.target.form.requestSubmit();
});
