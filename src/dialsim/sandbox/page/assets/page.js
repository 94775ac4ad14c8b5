// What htmx leaves to the page: focus and opened lines live through updates, and a lost server shows.
"use strict";

const callbacks = Idiomorph.defaults.callbacks;

// Opened lines stay open: whether one is, the server doesn't know.
callbacks.beforeAttributeUpdated = (name, node) => !(name === "open" && node.tagName === "DETAILS");

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
  if (focused) node.closest("article, section")?.querySelector("[tabindex='-1']")?.focus();
  return true;
};

document.addEventListener("toggle", (event) => {
  const body = event.target.querySelector(":scope > [data-kept]");
  if (body && event.target.open && !body.childElementCount) htmx.trigger(body, "refresh");
}, true);

// Errors that don't come from the page's own routes are in the interface's envelope.
document.addEventListener("htmx:beforeSwap", (event) => {
  const { xhr } = event.detail;
  if (!(xhr?.getResponseHeader("Content-Type") || "").startsWith("application/json")) return;
  const text = document.createElement("span");
  text.setAttribute("role", "alert");
  text.textContent = JSON.parse(xhr.responseText).message;
  event.detail.serverResponse = text.outerHTML;
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
