// The studio in the browser. Python owns the state and sends what is to be seen as properties of
// `model`; what a planner does goes back as messages. All text is set as text, never as HTML.

const DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const DAY_MINUTES = 1440;
const WAIT = 60; // ms between two messages while a slider is dragged

function el(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.flat(Infinity).filter(child => child != null));
  return made;
}

const clock = minutes =>
  `${String(Math.floor(minutes / 60)).padStart(2, "0")}:${String(minutes % 60).padStart(2, "0")}`;

// The weeks that the program reads: {Monday: [[540, 1140]], …} in minutes.
function weekText(week) {
  const said = [];
  for (let day = 0; day < 7; ) {
    const times = (week[DAYS[day]] || []).map(([a, b]) => `${clock(a)}-${clock(b)}`).join(",");
    let last = day;
    while (last < 6 && (week[DAYS[last + 1]] || []).map(([a, b]) => `${clock(a)}-${clock(b)}`)
      .join(",") === times) last += 1;
    const days = DAYS[day].slice(0, 3) + (last > day ? `-${DAYS[last].slice(0, 3)}` : "");
    if (times) said.push(`${days} ${times}`);
    day = last + 1;
  }
  return said.join("; ");
}

// A week of calling windows, painted with the pointer or the keyboard.
class WeekPainter {
  constructor(name, onpaint) {
    this.onpaint = onpaint;
    this.name = name;
    this.cells = [];
    this.at = [0, 18];
    this.said = el("p", { class: "week-said", role: "status" });
    this.grid = el("div", {
      class: "grid-week", role: "grid", "aria-label": `${name}, a week of half hours`,
      "aria-multiselectable": "true",
    });
    this.root = el("div", { class: "painter" }, this.grid, el("p", { class: "quiet small" },
      "Drag to open or close hours. Keys: arrows move, Space opens or closes, Shift with an " +
      "arrow paints on."), this.said);
    this.grid.addEventListener("pointerdown", event => this.begin(event));
    this.grid.addEventListener("pointermove", event => this.move(event));
    this.grid.addEventListener("pointerup", () => this.end());
    this.grid.addEventListener("pointercancel", () => this.drop());
    this.grid.addEventListener("keydown", event => this.key(event));
    this.grid.addEventListener("focusin", event => this.focused(event));
  }

  show(week) {
    if (this.stroke) return; // what is being painted counts
    const step = this.stepOf(week);
    if (step !== this.step) this.lay(step);
    this.week = week;
    this.open = DAYS.map(day => {
      const row = new Array(DAY_MINUTES / step).fill(false);
      for (const [from, to] of week[day] || []) row.fill(true, from / step, to / step);
      return row;
    });
    this.draw();
  }

  stepOf(week) { // half hours, or quarters and minutes of five where windows need them
    const ends = Object.values(week).flat(2);
    return [30, 15, 5, 1].find(step => ends.every(end => end % step === 0));
  }

  lay(step) {
    this.step = step;
    const columns = DAY_MINUTES / step;
    this.at[1] = Math.floor(9 * 60 / step);
    const hours = el("div", { class: "hours", "aria-hidden": "true" }, el("span"));
    for (let hour = 0; hour < 24; hour += 3)
      hours.append(el("span", { style: `grid-column: span ${180 / step}` }, String(hour)));
    this.cells = DAYS.map((day, row) => Array.from({ length: columns }, (_, column) =>
      el("div", { role: "gridcell", tabindex: "-1", "data-row": row, "data-column": column,
        class: (column * step) % 60 ? "" : "hour" })));
    this.grid.style.setProperty("--columns", columns);
    this.grid.replaceChildren(hours, ...this.cells.map((row, index) => el("div", { role: "row" },
      el("div", { role: "rowheader", class: "day", "aria-label": DAYS[index] },
        DAYS[index].slice(0, 3)), row)));
  }

  draw() {
    const [r, c] = this.at;
    this.cells.forEach((row, day) => row.forEach((cell, column) => {
      const open = this.shown(day, column), said = open ? "true" : "false";
      if (cell.getAttribute("aria-selected") !== said) {
        cell.setAttribute("aria-selected", said);
        const from = column * this.step;
        cell.setAttribute("aria-label", `${DAYS[day]} ${clock(from)} to ` +
          `${clock(from + this.step)}, ${open ? "open" : "closed"}`);
      }
      const stop = day === r && column === c ? "0" : "-1";
      if (cell.getAttribute("tabindex") !== stop) cell.setAttribute("tabindex", stop);
    }));
  }

  shown(day, column) {
    const stroke = this.stroke;
    if (!stroke) return this.open[day][column];
    const within = (value, a, b) => value >= Math.min(a, b) && value <= Math.max(a, b);
    return within(day, stroke.row, stroke.toRow) && within(column, stroke.column, stroke.toColumn)
      ? stroke.value : this.open[day][column];
  }

  place(event) {
    const box = this.cells[0][0].getBoundingClientRect();
    const last = this.cells[6][this.cells[6].length - 1].getBoundingClientRect();
    const bound = (value, most) => Math.max(0, Math.min(most, Math.floor(value)));
    return [
      bound((event.clientY - box.top) / (last.bottom - box.top) * 7, 6),
      bound((event.clientX - box.left) / (last.right - box.left) * this.cells[0].length,
        this.cells[0].length - 1),
    ];
  }

  begin(event) {
    if (event.button || !event.target.closest("[role=gridcell]")) return;
    event.preventDefault();
    const [row, column] = this.place(event);
    this.grid.setPointerCapture(event.pointerId);
    this.at = [row, column];
    this.cells[row][column].focus({ preventScroll: true });
    this.stroke = { row, column, toRow: row, toColumn: column, value: !this.open[row][column] };
    this.tell();
  }

  move(event) {
    if (!this.stroke) return;
    [this.stroke.toRow, this.stroke.toColumn] = this.place(event);
    this.tell();
  }

  tell() {
    const { row, column, toRow, toColumn, value } = this.stroke;
    const [a, b] = [Math.min(row, toRow), Math.max(row, toRow)];
    const from = Math.min(column, toColumn) * this.step;
    const to = (Math.max(column, toColumn) + 1) * this.step;
    const days = a === b ? DAYS[a] : `${DAYS[a]} to ${DAYS[b]}`;
    this.said.textContent = `${value ? "Open" : "Close"} ${days} ${clock(from)} to ${clock(to)}`;
    this.draw();
  }

  drop() {
    this.stroke = null;
    this.draw();
  }

  end() {
    if (!this.stroke) return;
    this.open = this.open.map((row, day) => row.map((_, column) => this.shown(day, column)));
    this.stroke = null;
    this.draw();
    this.onpaint(weekText(this.painted()));
  }

  painted() {
    return Object.fromEntries(DAYS.map((day, row) => {
      const spans = [];
      this.open[row].forEach((open, column) => {
        const from = column * this.step, last = spans[spans.length - 1];
        if (!open) return;
        if (last && last[1] === from) last[1] = from + this.step;
        else spans.push([from, from + this.step]);
      });
      return [day, spans];
    }));
  }

  focused(event) {
    const cell = event.target.closest("[role=gridcell]");
    if (!cell) return;
    this.at = [Number(cell.dataset.row), Number(cell.dataset.column)];
    this.draw();
  }

  key(event) {
    const [row, column] = this.at, last = this.cells[0].length - 1;
    const moves = {
      ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
      Home: [0, -column], End: [0, last - column], PageUp: [-row, 0], PageDown: [6 - row, 0],
    };
    if (event.key === " " || event.key === "Enter") {
      this.stroke = { row, column, toRow: row, toColumn: column, value: !this.open[row][column] };
      this.tell();
      this.end();
    } else if (event.key in moves) {
      const [down, right] = moves[event.key];
      const to = [Math.max(0, Math.min(6, row + down)), Math.max(0, Math.min(last, column + right))];
      if (event.shiftKey) { // from this cell to that, as this one is
        this.stroke = { row, column, toRow: to[0], toColumn: to[1], value: this.open[row][column] };
        this.tell();
        this.end();
      }
      this.at = to;
      this.cells[to[0]][to[1]].focus();
    } else return;
    event.preventDefault();
  }
}

// One value of the scenario: a label, a slider where it is a number in bounds, a field, its unit.
class Lever {
  constructor(page, given) {
    this.page = page;
    this.given = given;
    this.drag = 0; // all that one drag sends is undone together
    this.send = text => {
      this.shown = this.field.value;
      page.send({ kind: "set", key: given.key, text });
    };
    const id = `lever-${given.key.replace(/[^A-Za-z0-9]/g, "-")}-${page.count++}`;
    this.error = el("p", { class: "fault", id: `${id}-error`, role: "alert" });
    this.file = el("span", { class: "quiet small", id: `${id}-file` });
    this.reset = el("button", {
      type: "button", class: "small plain", hidden: true,
      "aria-label": `Back to the file: ${given.label}`,
      onclick: () => page.send({ kind: "reset", key: given.key }),
    }, "undo change");
    const described = { "aria-describedby": `${id}-error ${id}-file` };
    this.field = el("input", {
      id, type: "text", autocomplete: "off", spellcheck: "false", ...described,
      inputmode: given.number ? "decimal" : null, onchange: () => this.send(this.field.value),
      list: given.choices.length ? `${id}-choices` : null,
    });
    const choices = given.choices.length ? el("datalist", { id: `${id}-choices` },
      given.choices.map(value => el("option", { value }))) : null;
    this.slider = given.low != null ? el("input", {
      type: "range", min: given.low, max: given.high, step: given.step || 1,
      "aria-label": `${given.label}, slider`, "aria-describedby": `${id}-error`,
      oninput: () => this.dragged(), onchange: () => { this.dragged(); this.drag += 1; },
    }) : null;
    this.painter = given.kind === "week" ? new WeekPainter(given.label, text => {
      this.field.value = text;
      this.send(text);
    }) : null;
    const row = el("div", { class: "row" }, this.slider, this.field, choices,
      given.unit ? el("span", { class: "unit" }, given.unit) : null);
    this.root = el("div", { class: given.number ? "lever number" : "lever" },
      el("label", { for: id }, given.label), this.painter?.root, row,
      el("div", { class: "below" }, this.file, this.reset), this.error);
  }

  dragged() {
    if (this.given.number) this.field.value = this.slider.value;
    if (this.timer) return;
    const drag = `${this.field.id} ${this.drag}`;
    this.timer = setTimeout(() => {
      this.timer = null;
      this.page.send({ kind: "set", key: this.given.key, number: Number(this.slider.value), drag });
    }, WAIT);
  }

  show(said, force) {
    const busy = !force && (this.timer || this.slider?.matches(":active") && this.given.number);
    this.field.setAttribute("aria-invalid", said.error ? "true" : "false");
    this.error.textContent = said.error || "";
    this.root.classList.toggle("changed", said.changed);
    this.reset.hidden = !said.changed && !said.error;
    this.file.textContent = said.changed ? `in the file: ${said.file}` : "";
    if (busy || said.error) return;
    // what is being written is not replaced by news of something else
    const writing = !force && this.field.matches(":focus") && this.field.value !== this.shown;
    if (!writing && this.field.value !== said.text) this.field.value = said.text;
    if (!writing) this.shown = said.text;
    if (this.slider) {
      const value = Number(said.value);
      if (value > Number(this.slider.max)) this.slider.max = value;
      if (!this.slider.matches(":active")) this.slider.value = value;
      this.slider.setAttribute("aria-valuetext", `${said.text} ${this.given.unit || ""}`.trim());
    }
    if (this.painter && said.week) this.painter.show(said.week);
  }
}

class StudioPage {
  constructor(model) {
    this.model = model;
    this.count = 0;
    this.levers = new Map();
    this.root = el("div", { class: "studio" });
    this.part("notice", "div", { class: "notice", role: "alert" });
    this.part("answer", "section", { class: "answer", "aria-label": "The answer" });
    this.part("begin", "section", { class: "begin", "aria-label": "Begin with a list" });
    this.part("levers", "section", { class: "levers", "aria-label": "Levers" });
    this.part("charts", "section", { class: "charts", "aria-label": "Charts" });
    this.part("pins", "section", { class: "pins", "aria-label": "Variants side by side" });
    this.part("questions", "section", { class: "questions", "aria-label": "Questions" });
    this.part("tell", "section", { class: "tell", "aria-label": "Keep and tell on" });
    this.build();
    this.listen();
  }

  part(name, tag, given) {
    this[`${name}Part`] = el(tag, given);
  }

  send(message) {
    this.model.send_msg(message);
  }

  button(text, message, given = {}) {
    return el("button", { type: "button", ...given,
      onclick: () => this.send(typeof message === "function" ? message() : message) }, text);
  }

  // -- the parts --------------------------------------------------------------------------------

  build() {
    this.title = el("h1");
    this.lead = el("p", { class: "lead" });
    this.undo = this.button("Undo", { kind: "undo" }, { disabled: true });
    this.redo = this.button("Redo", { kind: "redo" }, { disabled: true });
    this.other = el("input", { type: "file", class: "visually-hidden", id: "studio-file",
      accept: ".csv,.xlsx,.yaml,.yml,.zip", "aria-label": "Open a list or a scenario file",
      onchange: () => { this.upload(this.other.files[0]); this.other.value = ""; } });
    const open = el("label", { class: "button", for: "studio-file" }, "Open a file…");
    this.buildAnswer();
    this.buildBegin();
    this.buildQuestions();
    this.buildTell();
    this.buildCharts();
    this.root.append(
      el("header", {}, el("div", {}, this.title, this.lead),
        el("div", { class: "tools", role: "toolbar", "aria-label": "Changes" },
          this.undo, this.redo, this.other, open)),
      this.noticePart, this.answerPart, this.beginPart,
      el("div", { class: "columns" }, this.leversPart,
        el("div", { class: "right" }, this.chartsPart, this.pinsPart, this.questionsPart,
          this.tellPart)),
    );
  }

  buildAnswer() {
    this.sentence = el("p", { class: "sentence", role: "status", "aria-live": "polite",
      "aria-atomic": "true" });
    this.rest = el("p", { class: "rest" });
    this.facts = el("dl", { class: "facts" });
    this.how = el("p", { class: "quiet small how" });
    const more = el("details", { class: "more", open: matchMedia("(min-width: 861px)").matches },
      el("summary", {}, "How this was found"), this.facts);
    this.answerPart.append(el("div", { class: "said" }, this.sentence, this.rest, this.how), more);
  }

  buildBegin() {
    this.listed = el("span", { class: "quiet", role: "status" });
    const field = ([name, label, hint, value]) => {
      const id = `begin-${name}`;
      return el("div", { class: "lever" }, el("label", { for: id }, label),
        el("input", { id, name, type: "text", value, autocomplete: "off" }),
        hint ? el("p", { class: "quiet small" }, hint) : null,
        el("p", { class: "fault", role: "alert", "data-for": name }));
    };
    const answers = kind => {
      const unticked = this.form.querySelectorAll("[name=holiday]:not(:checked)");
      this.send({ kind, answers: Object.fromEntries(new FormData(this.form)),
        ordinary: [...unticked].map(box => box.value) });
    };
    this.people = field(["people", "People", "made-up people", "1000"]);
    this.holidays = el("fieldset", { class: "holidays", hidden: true });
    this.form = el("form", { onsubmit: event => { event.preventDefault(); answers("begin"); },
      onchange: event => {
        if (["start", "deadline", "holidays"].includes(event.target.name)) answers("dates");
      } },
    el("h2", {}, "Whom do you want to call, and when?"),
    el("p", {}, "Drop a list of people (Excel or CSV, as exported) on this page, or ",
      el("label", { class: "link", for: "studio-file" }, "choose a file"),
      ". Or say how many people there are. ", this.listed),
    el("div", { class: "fields" }, this.people, this.model.asked.map(field)), this.holidays,
    el("button", { type: "submit", class: "primary" }, "Begin"));
    this.beginPart.append(this.form);
    this.propose = () => answers("dates");
  }

  buildCharts() {
    this.captions = {};
    const figures = this.model.charts.map(({ name, title }) => {
      this.captions[name] = el("p", { class: "quiet small" });
      const box = el("div", { class: "chart", role: "img", "aria-label": title });
      this.captions[name].box = box;
      box.append(this.model.get_child(name));
      return el("figure", {}, el("figcaption", {}, el("h3", {}, title), this.captions[name]), box);
    });
    this.chartsPart.append(...figures);
  }

  buildQuestions() {
    this.asks = el("div", { class: "asks" });
    this.progress = el("progress", { max: 1, value: 0, "aria-label": "Progress of the question" });
    this.saidSoFar = el("p", { role: "status" });
    this.stop = this.button("Stop", { kind: "stop" });
    this.running = el("div", { class: "running", hidden: true }, this.progress, this.stop);
    this.found = el("div", { class: "found" });
    this.questionsPart.append(el("h2", {}, "Questions"), this.asks, this.running, this.saidSoFar,
      this.found);
  }

  buildTell() {
    this.lines = el("pre", { tabindex: "0", "aria-label": "Changes as options of the command" });
    this.copied = el("span", { role: "status", class: "quiet small" });
    const copy = (what, from) => el("button", { type: "button", onclick: async () => {
      const text = from();
      try {
        await navigator.clipboard.writeText(text);
        this.copied.textContent = `${what} copied`;
      } catch {
        this.copied.textContent = `Not allowed to copy; select it instead: ${text}`;
      }
    } }, `Copy ${what}`);
    const saved = (what, label) =>
      this.button(label, () => ({ kind: "save", what, language: this.language.value }));
    this.language = el("select", { "aria-label": "Language of the sheet" },
      el("option", { value: "en" }, "English"), el("option", { value: "th" }, "ไทย"));
    this.takeBack = el("ul", { class: "small" });
    this.takeBackBox = el("details", { hidden: true }, el("summary", {}, "Take one change back"),
      this.takeBack);
    this.tellPart.append(el("h2", {}, "Keep and tell on"), this.lines, this.takeBackBox,
      el("div", { class: "asks" }, copy("the command", () => this.model.changes.command),
        copy("the link", () => location.href), saved("scenario", "Save the scenario file"),
        saved("report", "Save the report page"), saved("excel", "Save as Excel"),
        saved("sheet", "Save the sheet"), this.language, this.copied));
  }

  // -- what comes from Python -------------------------------------------------------------------

  listen() {
    // before the state that is there, which has another link, takes its place
    this.link = this.model.served ? location.hash.slice(1) : "";
    const on = (name, show) => { this.model.on(name, () => show.call(this)); show.call(this); };
    on("head", this.showHead);
    on("groups", this.showGroups);
    on("changes", this.showChanges);
    on("answer", this.showAnswer);
    on("pins", this.showPins);
    on("questions", this.showQuestions);
    on("notice", this.showNotice);
    this.model.on("msg:custom", message => this.told(message));
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    const scheme = () => this.send({ kind: "scheme", dark: this.dark.matches });
    this.dark.addEventListener("change", scheme);
    this.keys = event => this.key(event);
    document.addEventListener("keydown", this.keys);
    for (const name of ["dragover", "drop"]) this.root.addEventListener(name, event => {
      event.preventDefault();
      if (name === "drop") this.upload(event.dataTransfer.files[0]);
    });
    this.model.on("remove", () => document.removeEventListener("keydown", this.keys));
    this.send({ kind: "ready", dark: this.dark.matches,
      link: this.link });
    if (!this.model.head.begun) this.propose();
  }

  key(event) {
    const inField = event.composedPath()[0].matches?.("input[type=text], textarea");
    if (!(event.ctrlKey || event.metaKey) || inField || event.key.toLowerCase() !== "z") return;
    event.preventDefault();
    this.send({ kind: event.shiftKey ? "redo" : "undo" });
  }

  showHead() {
    const { title, lead, begun } = this.model.head;
    this.title.textContent = title || "dialsim studio";
    this.lead.textContent = lead || "";
    if (this.model.served) document.title = title ? `${title} – dialsim studio` : "dialsim studio";
    this.root.classList.toggle("empty", !begun);
    const { listed, amount, holidays } = this.model.head;
    this.listed.textContent = listed || "";
    this.people.hidden = Boolean(listed);
    const worth = this.form.elements.namedItem("value");
    if (listed && this.listedBefore !== listed) worth.value = amount;
    this.listedBefore = listed;
    this.showHolidays(holidays || []);
    for (const error of this.form.querySelectorAll("[data-for]"))
      error.textContent = this.model.head.errors?.[error.dataset.for] || "";
  }

  showHolidays(holidays) {
    const shape = JSON.stringify(holidays);
    if (shape === this.holidayShape) return; // what is ticked stays as it is
    this.holidayShape = shape;
    this.holidays.hidden = !holidays.length;
    this.holidays.replaceChildren(el("legend", {}, "Holidays in this time; untick ordinary days"),
      ...holidays.map(([day, said]) => el("label", {},
        el("input", { type: "checkbox", name: "holiday", value: day, checked: true }), said)));
  }

  showGroups() {
    this.levers.clear();
    const groups = this.model.groups.map(group => {
      const made = group.levers.map(given => {
        const lever = new Lever(this, given);
        this.levers.set(given.key, lever);
        return lever.root;
      });
      return el("details", { open: group.open }, el("summary", {}, group.title),
        group.note ? el("p", { class: "quiet small" }, group.note) : null, made);
    });
    this.leversPart.replaceChildren(el("h2", {}, "Levers"), this.chooser(), ...groups,
      this.pausing(), this.anyPath());
    this.showChanges(true);
  }

  chooser() {
    this.which = el("input", { id: "which-campaign", type: "text", list: "campaigns",
      autocomplete: "off", onchange: () => this.send({ kind: "campaign", name: this.which.value }) });
    this.names = el("datalist", { id: "campaigns" });
    this.whichRow = el("div", { class: "lever" },
      el("label", { for: "which-campaign" }, "Levers of the campaign"), this.which, this.names);
    return el("div", {}, this.whichRow,
      this.button("Add a campaign like this one", { kind: "add-campaign" }, { class: "plain small" }));
  }

  pausing() {
    const since = el("input", { id: "pause-since", type: "text", placeholder: "Tue 12:00" });
    const until = el("input", { id: "pause-until", type: "text", placeholder: "Tue 14:00" });
    this.pauses = el("ul", { class: "small" });
    this.pauseError = el("p", { class: "fault", role: "alert" });
    const form = el("form", { onsubmit: event => {
      event.preventDefault();
      this.send({ kind: "pause", since: since.value, until: until.value });
    } }, el("label", { for: "pause-since" }, "From, Thai time"), since,
    el("label", { for: "pause-until" }, "To, Thai time"), until,
    el("button", { type: "submit" }, "Pause"), this.pauseError);
    return el("details", {}, el("summary", {}, "Pauses"), this.pauses, form);
  }

  anyPath() {
    const path = el("input", { id: "any-path", type: "text", list: "any-paths", spellcheck: "false",
      autocomplete: "off", placeholder: "costs.perMinute",
      oninput: () => this.send({ kind: "complete", text: path.value }) });
    const value = el("input", { id: "any-value", type: "text", autocomplete: "off",
      "aria-describedby": "any-error" });
    this.paths = el("datalist", { id: "any-paths" });
    this.anyError = el("p", { class: "fault", id: "any-error", role: "alert" });
    const form = el("form", { onsubmit: event => {
      event.preventDefault();
      this.send({ kind: "any", path: path.value, text: value.value });
    } }, el("label", { for: "any-path" }, "Path"), path, this.paths,
    el("label", { for: "any-value" }, "Value"), value,
    el("button", { type: "submit" }, "Change"), this.anyError);
    return el("details", {}, el("summary", {}, "Everything else"), el("p", { class: "quiet small" },
      "Any value of the file by its path, as --set takes it."), form);
  }

  showChanges(force = false) {
    const { values, undo, redo, link, epoch, anyError, pauseError, pauses, campaigns, campaign,
      campaignCount } = this.model.changes;
    const jumped = force === true || epoch !== this.epoch;
    this.epoch = epoch;
    for (const [key, said] of Object.entries(values || {})) this.levers.get(key)?.show(said, jumped);
    this.undo.disabled = !undo;
    this.redo.disabled = !redo;
    this.showLines();
    if (this.anyError) {
      this.anyError.textContent = anyError || "";
      this.pauseError.textContent = pauseError || "";
      this.pauses.replaceChildren(...(pauses || []).map(text => el("li", {}, text)));
      this.whichRow.hidden = !(campaignCount > 1);
      if (!this.which.matches(":focus") || jumped) this.which.value = campaign || "";
      this.names.replaceChildren(...(campaigns || []).map(name => el("option", { value: name })));
    }
    if (this.model.served && link != null && location.hash.slice(1) !== link)
      history.replaceState(null, "", link ? `#${link}` : location.pathname + location.search);
  }

  showLines() {
    const { lines, differences } = this.model.changes;
    this.lines.textContent = lines?.length ? lines.join("\n") : "Nothing is changed: this is the file.";
    this.takeBack.replaceChildren(...(differences || []).map(line => el("li", {}, line + " ",
      this.button("take back", { kind: "without", line }, { class: "plain small",
        "aria-label": `Take back ${line}` }))));
    this.takeBackBox.hidden = !differences?.length;
  }

  showAnswer() {
    const { sentence, rest, facts, how, busy, captions } = this.model.answer;
    const text = sentence || "";
    if (this.sentence.textContent !== text) this.sentence.textContent = text;
    this.rest.textContent = rest || "";
    this.how.textContent = how || "";
    this.answerPart.classList.toggle("busy", Boolean(busy));
    this.facts.replaceChildren(...(facts || []).map(([question, answer, detail]) => el("div", {},
      el("dt", {}, question), el("dd", {}, el("strong", {}, answer),
        detail ? el("span", {}, detail) : null))));
    this.allowPin();
    for (const [name, said] of Object.entries(captions || {})) {
      const caption = this.captions[name];
      if (!caption) continue;
      caption.textContent = said;
      caption.box.setAttribute("aria-label", said);
    }
  }

  // only what has an answer can be pinned; asked of the answer itself, which always arrives
  allowPin() {
    if (this.pin) this.pin.disabled = !this.model.answer.facts?.length;
  }

  showPins() {
    const { head, rows, note } = this.model.pins;
    const focused = this.focusedPin();
    const pin = this.button("Pin this variant", { kind: "pin" });
    this.pin = pin;
    this.allowPin();
    const table = rows?.length ? el("div", { class: "table", tabindex: "0",
      role: "region", "aria-label": "Variants" }, el("table", {},
      el("thead", {}, el("tr", {}, head.map(name => el("th", { scope: "col" }, name)),
        el("th", { scope: "col" }, el("span", { class: "visually-hidden" }, "What to do")))),
      el("tbody", {}, rows.map(row => el("tr", {},
        el("th", { scope: "row" }, row.name),
        row.cells.map(([cell, less], at) => el("td", { "data-head": head[at + 1] }, cell,
          less ? el("span", { class: "less" }, less) : null)),
        el("td", { class: "do" }, row.key == null ? null : [
          this.button("Go there", { kind: "goto", pin: row.key },
            { "aria-label": `Go to ${row.name}`, "data-pin": `g${row.key}` }),
          row.fixed ? null : this.button("Remove", { kind: "unpin", pin: row.key },
            { "aria-label": `Remove ${row.name}`, "data-pin": `r${row.key}` })].filter(Boolean))))))) : null;
    this.pinsPart.replaceChildren(el("h2", {}, "Side by side"), pin,
      ...(note ? [el("p", { class: "quiet small" }, note)] : []), ...(table ? [table] : []));
    if (focused) (this.pinsPart.querySelector(`[data-pin="${focused}"]`) || pin).focus();
  }

  focusedPin() {
    return this.pinsPart.querySelector("[data-pin]:focus")?.dataset.pin
      || (this.pinsPart.querySelector("button:focus") ? "pin" : null);
  }

  showQuestions() {
    const { asks, running, done, total, said, error, found } = this.model.questions;
    const shape = JSON.stringify(asks || []);
    if (shape !== this.shape) { // answers being typed stay as they are
      this.shape = shape;
      this.asks.replaceChildren(...(asks || []).map(ask => {
        const form = el("form", { class: "ask", onsubmit: event => {
          event.preventDefault();
          this.send({ kind: "ask", question: ask.key,
            given: Object.fromEntries(new FormData(form)) });
        } }, el("button", { type: "submit" }, ask.label), (ask.fields || []).map(field => [
          el("label", { for: `ask-${ask.key}-${field.name}` }, field.label),
          el("input", { id: `ask-${ask.key}-${field.name}`, name: field.name, type: "text",
            value: field.value, size: field.size || 12, autocomplete: "off" })]));
        return form;
      }));
    }
    for (const button of this.asks.querySelectorAll("button")) button.disabled = Boolean(running);
    this.running.hidden = !running;
    if (total) this.progress.value = done / total;
    else this.progress.removeAttribute("value");
    this.saidSoFar.className = error ? "fault" : "";
    if (this.saidSoFar.textContent !== (error || said || ""))
      this.saidSoFar.textContent = error || said || "";
    this.found.replaceChildren(...this.finding(found));
  }

  finding(found) {
    if (!found) return [];
    const { sentence, said, tables, apply, command } = found;
    const table = ({ head, rows }) => el("div", { class: "table", tabindex: "0", role: "region",
      "aria-label": `Evidence: ${head[0]}` }, el("table", {},
      el("thead", {}, el("tr", {}, head.map(name => el("th", { scope: "col" }, name)))),
      el("tbody", {}, rows.map(row => el("tr", {}, row.map((cell, at) => at
        ? el("td", { "data-head": head[at] }, cell)
        : el("th", { scope: "row", "data-head": head[0] }, cell)))))));
    return [el("p", { class: "result" }, sentence),
      apply ? this.button(apply.label, { kind: "apply" }, { class: "primary" }) : null,
      ...said.map(text => el("p", {}, text)),
      tables.length ? el("details", { open: matchMedia("(min-width: 481px)").matches }, el("summary", {}, "Evidence"),
        tables.map(table)) : null,
      command ? el("p", { class: "quiet small" }, "In a terminal:") : null,
      command ? el("pre", { tabindex: "0", "aria-label": "The command that asks the same" },
        command) : null,
    ].filter(Boolean);
  }

  showNotice() {
    const { text, kind } = this.model.notice;
    this.noticePart.className = `notice ${kind || ""}`;
    this.noticePart.replaceChildren(...(text ? [el("span", {}, text),
      this.button("Close", { kind: "noted" }, { "aria-label": "Close the message" })] : []));
  }

  told(message) {
    if (message.kind === "file") {
      const link = el("a", { download: message.name,
        href: URL.createObjectURL(new Blob([message.data], { type: message.type })) });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    } else if (message.kind === "paths") {
      this.paths.replaceChildren(...message.paths.map(path => el("option", { value: path })));
    }
  }

  async upload(file) {
    if (!file) return;
    if (file.size > this.model.most_bytes) {
      this.send({ kind: "too-large", name: file.name, size: file.size });
      return;
    }
    this.send({ kind: "upload", name: file.name, data: await file.arrayBuffer() });
  }
}

export function render({ model }) {
  return new StudioPage(model).root;
}
