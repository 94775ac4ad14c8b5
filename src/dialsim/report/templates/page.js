// Tables that are sorted and copied, and the values under the pointer. Nothing is loaded or sent.
(() => {
  "use strict";
  document.documentElement.classList.add("live");
  const words = cell => cell.textContent.replace(/\s+/g, " ").trim();
  const button = (said, act) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = said;
    made.addEventListener("click", act);
    return made;
  };

  const letters = new Intl.Collator("en", { numeric: true });
  const value = cell => ("value" in cell.dataset ? Number(cell.dataset.value) : NaN);
  const compare = (one, other, way) => {
    const [a, b] = [value(one), value(other)];
    if (isNaN(a) !== isNaN(b)) return isNaN(a) ? 1 : -1; // what has no value comes last
    if (!isNaN(a)) return way * Math.sign(a - b || 0);
    return way * letters.compare(words(one), words(other));
  };
  const ways = { none: "ascending", ascending: "descending", descending: "none" };
  const sortable = table => {
    const rows = [...table.tBodies[0].rows];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const said = head.textContent;
      head.setAttribute("aria-sort", "none");
      head.replaceChildren(button(said, () => {
        const way = ways[head.getAttribute("aria-sort")];
        heads.forEach(other => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", way);
        const moved = rows.filter(row => !("fixed" in row.dataset));
        const sign = { ascending: 1, descending: -1 }[way];
        if (sign) moved.sort((a, b) => compare(a.cells[column], b.cells[column], sign));
        table.tBodies[0].append(...rows.map(row => ("fixed" in row.dataset ? row : moved.shift())));
      }));
    });
  };

  // a sheet takes what begins like a formula for one
  const harmless = text => (/^[=+\-@]/.test(text) && isNaN(text.replace(/,/g, "")) ? `'${text}` : text);
  const written = table => [...table.rows]
    .map(row => [...row.cells].map(cell => harmless(words(cell))).join("\t")).join("\n");
  const put = async text => {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const area = document.body.appendChild(document.createElement("textarea"));
    area.value = text;
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (!done) throw new Error("not copied");
  };
  for (const box of document.querySelectorAll(".table")) {
    const table = box.querySelector("table");
    if (box.classList.contains("sorts")) sortable(table);
    const copy = button("Copy table", async () => {
      copy.textContent = await put(written(table)).then(() => "Copied", () => "Could not be copied");
      setTimeout(() => { copy.textContent = "Copy table"; }, 2000);
    });
    copy.className = "copy";
    copy.setAttribute("aria-live", "polite");
    box.append(copy);
  }

  const tip = document.body.appendChild(document.createElement("div"));
  tip.className = "value";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true");
  for (const title of document.querySelectorAll("figure svg title")) {
    title.parentNode.dataset.said = title.textContent; // or the browser shows it as well, later
    title.remove();
  }
  const hide = () => { tip.hidden = true; };
  const show = event => {
    const mark = event.target.closest("[data-said]");
    if (!mark) return hide();
    tip.textContent = mark.dataset.said;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const room = document.documentElement.clientWidth - box.width - 4;
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, room))}px`;
    const above = event.clientY - box.height - 12;
    tip.style.top = `${above < 4 ? event.clientY + 18 : above}px`;
  };
  document.addEventListener("pointermove", show);
  document.addEventListener("pointerdown", show);
  document.addEventListener("scroll", hide, { capture: true, passive: true });
})();
