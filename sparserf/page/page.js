// The page of a model. `model` (and `scale`, where intervals have one) are the functions of the
// exported JavaScript; all else is in the data. What users have named becomes text alone.

const page = JSON.parse(document.getElementById("data").textContent);
const source = document.currentScript.textContent.split("// ----\n")[1];
const at = id => document.getElementById(id);
const state = { output: 0, row: [], base: [], isTypical: true };
// A term of more columns that differ is shared out by random orders, of fewer exactly.
const MOST_EXACT = 8, ORDERS = 16;
// What is shown at first.
const CELLS = 24, CURVES = 12, TERMS = 30, ADDS = 12, MOST_CLASSES = 10;

// ---- elements

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  return filled(made, attributes, children);
}

function drawn(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function number(value, digits = 4) {
  if (value === null || Number.isNaN(value)) return "missing";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e9 || size < 1e-4)) return value.toExponential(digits - 1);
  return value.toLocaleString("en", { maximumSignificantDigits: digits });
}

function signed(value) {
  return (value < 0 ? "−" : "+") + number(Math.abs(value), 3);
}

function percent(share) {
  return `${(100 * share).toFixed(1)}\u00a0%`;
}

// ---- columns and cells: the number of a cell is a place of a level, -1 another level, null missing

function words(column, value) {
  if (value === null || Number.isNaN(value)) return "missing";
  if (column.levels) return value < 0 ? "another level" : column.names[value];
  if (column.clock === "dates") return textOfDays(value);
  if (column.clock === "times of day") return clockOf(value);
  return number(value) + (column.clock ? " d" : "");
}

// The same on an axis, where a date has no time.
function tick(column, value) {
  const text = words(column, value);
  return column.clock === "dates" ? text.slice(0, 10) : text;
}

function textOfDays(days) {
  const made = new Date(days * 864e5);
  if (Number.isNaN(made.getTime())) return String(days);
  const text = made.toISOString();
  return Number.isInteger(days) ? text.slice(0, 10) : text.slice(0, 16);
}

function clockOf(days) {
  const minutes = Math.round(days * 1440);
  const two = value => String(value).padStart(2, "0");
  return `${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}

// The cells of a row as the model takes them, by the places of the columns.
function cellsOf(row) {
  const cells = [];
  page.columns.forEach((column, k) => {
    const value = row[k];
    cells[column.at] = value === null || !column.levels
      ? value
      : value < 0 ? anotherLevel(column) : column.levels[value];
  });
  return cells;
}

function anotherLevel(column) {
  return typeof column.levels[0] === "number" ? -1.2345e300 : "\u0000";
}

const typical = page.columns.map(column => column.typical);

// ---- the link: the cells that are not typical, by the index of the column

function readLink() {
  state.row = [...typical];
  try {
    const cells = JSON.parse(decodeURIComponent(location.hash.replace(/^#row=/, "")));
    for (const [k, value] of Object.entries(cells)) {
      const column = page.columns[k];
      if (!column) continue;
      const isPlace = !column.levels
        || (Number.isInteger(value) && value >= -1 && value < column.levels.length);
      if ((value === null && column.mayMiss) || (Number.isFinite(value) && isPlace))
        state.row[k] = value;
    }
  } catch {
    // no link to a row
  }
}

function linkOf(row) {
  const cells = Object.fromEntries(
    row.map((value, k) => [k, value]).filter(([k, value]) => value !== typical[k]),
  );
  return `#row=${encodeURIComponent(JSON.stringify(cells))}`;
}

let writing;
function writeLink() {
  clearTimeout(writing);
  writing = setTimeout(() => {
    try {
      history.replaceState(null, "", linkOf(state.row));
    } catch {
      // a browser that keeps no links of files
    }
  }, 300);
}

// ---- what each column adds: Shapley values between two rows, term by term

function contributions(x, base, output) {
  const from = model.encode(base), to = model.encode(x), total = new Map();
  let isExact = true;
  const encodings = new Map();
  for (let v = 0; v < from.length; v++) {
    const j = page.encodings[v];
    if (from[v] === undefined || from[v] === to[v]) continue;
    if (!encodings.has(j)) encodings.set(j, []);
    encodings.get(j).push(v);
  }
  const u = [...from];
  const put = (j, made) => encodings.get(j).forEach(v => { u[v] = made[v]; });
  model.terms.forEach(([coef, phi], k) => {
    const columns = page.terms[k].columns.filter(j => encodings.has(j)), n = columns.length;
    const c = coef[output];
    if (!n || !c) return;
    const add = (j, value) => total.set(j, (total.get(j) ?? 0) + c * value);
    const start = phi(u);
    if (page.terms[k].isLinear || n === 1) {
      for (const j of columns) {
        put(j, to);
        add(j, phi(u) - start);
        put(j, from);
      }
    } else if (n <= MOST_EXACT) {
      const worth = [start];
      for (let step = 1; step < 1 << n; step++) {
        const bit = Math.log2(step & -step), set = step ^ (step >> 1);
        put(columns[bit], set >> bit & 1 ? to : from);
        worth[set] = phi(u);
      }
      put(columns[n - 1], from);
      columns.forEach((j, bit) => {
        for (let set = 0; set < 1 << n; set++)
          if (!(set >> bit & 1)) add(j, shareOf(size(set), n) * (worth[set | 1 << bit] - worth[set]));
      });
    } else {
      isExact = false;
      for (const order of ordersOf(columns)) {
        let before = start;
        for (const j of order) {
          put(j, to);
          const now = phi(u);
          add(j, (now - before) / ORDERS);
          before = now;
        }
        columns.forEach(j => put(j, from));
      }
    }
  });
  return { total, isExact };
}

function size(set) {
  let n = 0;
  for (; set; set &= set - 1) n++;
  return n;
}

// The share s! (n - 1 - s)! / n! of the orders in which a column comes after s given ones.
function shareOf(s, n) {
  let share = 1 / n;
  for (let k = 1; k <= s; k++) share *= k / (n - k);
  return share;
}

// Orders of columns, the same at each call, each with its reverse.
function ordersOf(columns) {
  let seed = 1;
  const draw = n => (seed = (seed * 48271) % 2147483647) % n, orders = [];
  for (let k = 0; k < ORDERS / 2; k++) {
    const order = [...columns];
    for (let i = order.length - 1; i > 0; i--) {
      const other = draw(i + 1);
      [order[i], order[other]] = [order[other], order[i]];
    }
    orders.push(order, [...order].reverse());
  }
  return orders;
}

// ---- bars in lines of HTML

function bars(lines, { middle, strong } = {}) {
  const most = Math.max(...lines.map(([, value]) => Math.abs(value)), 1e-300);
  const half = middle ? 50 : 100;
  return element("div", { class: "bars" }, ...lines.flatMap(([name, value, text], k) => {
    const bar = element("span", { class: value < 0 ? "down" : "up" });
    bar.style.width = `${half * Math.abs(value) / most}%`;
    bar.style.left = middle ? `${value < 0 ? 50 - half * -value / most : 50}%` : "0";
    return [
      element("span", { class: "name" }, name),
      element("span", { class: `track ${middle ? "middle" : "start"}`, "aria-hidden": "true" }, bar),
      element("span", { class: `value${k === strong ? " strong" : ""}` }, text),
    ];
  }));
}

function row(cells, attributes = {}) {
  return element("tr", attributes, ...cells.map(cell => element(
    "td", typeof cell === "number" ? { class: "number" } : {},
    typeof cell === "number" ? number(cell) : cell,
  )));
}

// ---- what it is

function showWhat() {
  at("title").textContent = page.title;
  at("version").textContent = page.version;
  for (const [name, said] of page.what)
    at("what-lines").tBodies[0].append(element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, said)));
  if (page.outputs.length > 1) {
    page.outputs.forEach((name, k) => at("output").append(element("option", { value: k }, name)));
    at("output-choice").hidden = false;
    at("output").addEventListener("change", event => {
      state.output = Number(event.target.value);
      showAll();
    });
  }
  if (page.errors) showErrors();
}

function showErrors() {
  const { rows, measures, questions } = page.errors;
  at("errors").hidden = false;
  at("errors-rows").textContent = rows.toLocaleString("en");
  measures.forEach(each => at("measures").tBodies[0].append(row(each)));
  at("questions").hidden = !questions.length;
  if (!questions.length) return;
  questions.forEach((each, k) => at("question").append(element("option", { value: k }, each.name)));
  at("question-choice").hidden = questions.length < 2;
  const columnAt = place => page.columns.find(column => column.at === place);
  questions[0].columns.forEach((each, k) => at("by-column").append(element("option", { value: k }, columnAt(each.at).name)));
  const show = () => {
    const question = questions[Number(at("question").value)];
    at("tenths").replaceChildren(tenths(question));
    const { at: place, groups } = question.columns[Number(at("by-column").value)];
    const said = value => tick(columnAt(place), value);
    at("by-groups").tBodies[0].replaceChildren(...groups.map(([of, ...numbers]) => row([
      Array.isArray(of) ? `${said(of[0])} to ${said(of[1])}` : typeof of === "number" ? said(of) : of,
      ...numbers,
    ])));
  };
  at("question").addEventListener("change", show);
  at("by-column").addEventListener("change", show);
  show();
}

function tenths(question) {
  const pairs = question.tenths.map(each => [each[1], each[2]]);
  const all = pairs.flat(), low = Math.min(...all), high = Math.max(...all);
  const side = 260, pad = 42, scale = value => (value - low) / (high - low || 1) * (side - pad - 24);
  const px = value => pad + scale(value), py = value => side - pad - scale(value);
  const said = element("output");
  const chart = drawn("svg", { viewBox: `0 0 ${side} ${side}`, role: "img", "aria-label": `tenths of the rows: ${pairs.map(([p, o]) => `${number(p)} predicted, ${number(o)} observed`).join("; ")}` },
    drawn("line", { class: "even", x1: px(low), y1: py(low), x2: px(high), y2: py(high) }),
    ...[low, high].flatMap(end => [
      drawn("text", { x: px(end), y: side - pad + 16, "text-anchor": end === low ? "start" : "end" }, number(end, 3)),
      drawn("text", { x: pad - 6, y: py(end) + (end === low ? 0 : 8), "text-anchor": "end" }, number(end, 3)),
    ]),
    drawn("text", { x: (side + pad) / 2, y: side - 8, "text-anchor": "middle" }, "predicted"),
    drawn("text", { x: 4, y: 12 }, "observed"),
    ...question.tenths.map(([rows, p, o, error]) => {
      const tell = () => { said.textContent = `${rows} rows: predicted ${number(p)}, observed ${number(o)}, error ${number(error)}`; };
      const label = `${rows} rows, predicted ${number(p)}, observed ${number(o)}`;
      return drawn("circle", { class: "point", cx: px(p), cy: py(o), r: 4, tabindex: 0, "aria-label": label, onpointerenter: tell, onfocus: tell });
    }));
  return element("div", {}, chart, said);
}

// ---- try it

// The lines of the columns that have been shown, by their index.
const controls = new Map();

function lineOf(k) {
  if (!controls.has(k)) {
    controls.set(k, controlOf(page.columns[k], k));
    controls.get(k).show(state.row[k]);
  }
  return controls.get(k).line;
}

function showCells() {
  at("find-label").hidden = page.columns.length <= CELLS / 2;
  let isAll = false;
  const filter = () => {
    const asked = at("find").value.toLowerCase();
    const fits = [...page.columns.keys()].filter(k => page.columns[k].name.toLowerCase().includes(asked));
    const n = fits.length;
    at("cells").replaceChildren(...fits.slice(0, isAll ? n : CELLS).map(lineOf));
    showAdds();
    at("more-cells").hidden = isAll || n <= CELLS;
    at("more-cells").textContent = `Show all ${n} columns`;
  };
  at("find").addEventListener("input", filter);
  at("more-cells").addEventListener("click", () => { isAll = true; filter(); });
  filter();
  at("reset").addEventListener("click", () => {
    state.row = [...typical];
    state.base = [...typical];
    state.isTypical = true;
    changed();
  });
  at("compare").addEventListener("click", () => {
    state.base = [...state.row];
    state.isTypical = false;
    changed();
  });
  at("link").addEventListener("click", () => {
    const link = location.href.split("#")[0] + linkOf(state.row);
    copy(link, at("link-said"));
  });
}

// The line of a column: `line`, its element; `show`, which writes the number of the cell to it.
function controlOf(column, k) {
  const set = value => {
    state.row[k] = value;
    changed(k);
  };
  const adds = element("span", { class: "adds" });
  const name = element("label", { class: "name", for: `cell-${k}` }, column.name);
  if (column.levels || (column.values && column.values.length <= 2)) {
    const places = column.levels ? [...column.names.keys(), -1] : column.values;
    const choice = element("select", { id: `cell-${k}`, onchange: () => set(choice.value === "" ? null : Number(choice.value)) },
      ...places.map(value => element("option", { value }, words(column, value))),
      ...(column.mayMiss ? [element("option", { value: "" }, "missing")] : []));
    const line = element("div", { class: "cell" }, name, element("span", { class: "control" }, choice), adds);
    return { line, adds, show: value => { choice.value = value === null ? "" : String(value); } };
  }
  const [low, high] = column.ends;
  const isWhole = column.values && column.values.every(Number.isInteger);
  const slider = element("input", {
    type: "range", min: low, max: high, step: isWhole ? 1 : (high - low) / 1000, list: `marks-${k}`,
    "aria-label": column.name, oninput: () => set(ofSlider(column, Number(slider.value))),
  });
  const field = element("input", { type: "text", id: `cell-${k}`, inputmode: column.clock ? "text" : "decimal", onchange: () => {
    const value = numberOf(column, field.value);
    field.setAttribute("aria-invalid", value === undefined);
    if (value !== undefined) set(value);
  } });
  const marks = element("datalist", { id: `marks-${k}` }, ...column.marks.map(value => element("option", { value })));
  const missing = element("input", { type: "checkbox", onchange: () => set(missing.checked ? null : column.typical ?? low) });
  const line = element("div", { class: "cell" }, name,
    element("span", { class: "control" }, slider, marks, field,
      ...(column.mayMiss ? [element("label", { class: "missing" }, missing, " missing")] : [])),
    adds);
  const show = value => {
    missing.checked = value === null;
    slider.disabled = value === null;
    if (value !== null) slider.value = value;
    field.removeAttribute("aria-invalid");
    field.value = value === null ? "" : column.clock && column.clock !== "durations" ? words(column, value) : String(Number(value.toPrecision(12)));
  };
  return { line, adds, show };
}

// The number that the place of a slider stands for: one of few digits, or a whole day.
function ofSlider(column, value) {
  if (column.clock === "dates") return column.marks.every(Number.isInteger) ? Math.round(value) : value;
  return Math.min(Math.max(Number(value.toPrecision(4)), column.ends[0]), column.ends[1]);
}

// The number that a text of a cell is, undefined where it is none.
function numberOf(column, text) {
  const [, , read] = model.columns.find(([place]) => place === column.at) ?? scale.columns.find(([place]) => place === column.at);
  if (text.trim() === "") return column.mayMiss ? null : undefined;
  const plain = Number(text);
  try {
    const value = Number.isNaN(plain) ? read(text.trim()) : plain;
    return Number.isFinite(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

let isAsked = false;
function changed(k) {
  if (k === undefined) controls.forEach((each, i) => each.show(state.row[i]));
  else controls.get(k)?.show(state.row[k]);
  writeLink();
  if (isAsked) return;
  isAsked = true;
  requestAnimationFrame(() => {
    isAsked = false;
    showAnswer();
  });
}

function predictionOf(f, cells) {
  if (page.kind === "probability") {
    const p = model.probabilities(f), best = p.indexOf(Math.max(...p));
    const shown = [...p.keys()].sort((a, b) => p[b] - p[a]).slice(0, MOST_CLASSES).sort((a, b) => a - b);
    const lines = shown.map(k => [String(model.classes[k]), p[k], percent(p[k])]);
    return element("div", {}, element("div", { class: "big" }, String(model.classOf(f))), bars(lines, { strong: shown.indexOf(best) }));
  }
  if (page.kind === "label")
    return element("div", {}, element("div", { class: "big" }, String(model.classOf(f))), `f = ${f.map(each => number(each)).join(", ")}`);
  const values = model.predictions(f);
  const made = element("div", {}, element("div", { class: "big", "data-value": values[state.output] }, number(values[state.output], 6)));
  if (values.length > 1) made.append(page.outputs[state.output]);
  if (page.band) {
    const [low, high] = intervalOf(values[0], cells);
    made.append(element("div", { id: "band", "data-low": low, "data-high": high }, `${number(low)} to ${number(high)}, ${page.band.words}`));
  }
  return made;
}

function intervalOf(value, cells) {
  const { half, limits: [least, most], ends } = page.band;
  let width = half;
  if (ends) {
    const [log] = scale.decisions(scale.read(cells));
    width *= Math.exp(Math.min(Math.max(log, ends[0]), ends[1]));
  }
  const within = each => Math.min(Math.max(each, least ?? -Infinity), most ?? Infinity);
  return [within(value - width), within(value + width)];
}

function showAnswer() {
  const cells = cellsOf(state.row), x = model.read(cells), base = model.read(cellsOf(state.base));
  const f = model.decisions(x), from = model.decisions(base), k = state.output;
  at("prediction").replaceChildren(predictionOf(f, cells));
  const { total, isExact } = contributions(x, base, k);
  const lines = page.columns
    .map((column, i) => [column, i, total.get(column.at) ?? 0])
    .filter(([, , value]) => value !== 0)
    .sort((a, b) => Math.abs(b[2]) - Math.abs(a[2]));
  const rest = lines.slice(ADDS);
  const shown = lines.slice(0, ADDS).map(([column, i, value]) => [`${column.name} = ${words(column, state.row[i])}`, value, signed(value)]);
  if (rest.length) {
    const value = rest.reduce((sum, line) => sum + line[2], 0);
    shown.push([`${rest.length} more columns`, value, signed(value)]);
  }
  const other = state.isTypical ? "the typical row" : "the row to compare with";
  const name = page.kind !== "value" ? `f of ${page.outputs[k]}` : page.outputs.length > 1 ? page.outputs[k] : "f";
  at("adds-head").textContent = `What each column adds to ${name}, compared with ${other}`;
  at("adds").replaceChildren(shown.length ? bars(shown, { middle: true }) : `This is ${other}: change a cell.`);
  at("adds-note").textContent = `${name} is ${number(f[k])} here and ${number(from[k])} in ${other}, in ${page.unit}. `
    + `Shapley values between the two rows${isExact ? "" : `, of terms of many columns by ${ORDERS} orders`}.`;
  state.adds = total;
  showAdds();
  showTermsNow(model.encode(x), model.encode(base));
  showNow(x);
}

function showAdds() {
  controls.forEach(({ adds }, i) => {
    const value = state.adds?.get(page.columns[i].at);
    adds.textContent = value ? signed(value) : "";
  });
}

// ---- effects: curves, bars of levels, and maps, drawn from points

const WIDE = 260, HIGH = 150, LEFT = 44, RIGHT = 8, TOP = 8, BELOW = 24;
const figures = [];
let curves = CURVES;

function showEffects() {
  const k = state.output;
  at("effects-note").textContent = `By how much each column moves f, in ${page.unit}, from its mean: `
    + `the mean over ${page.hasRows ? "rows" : "made rows"} with the column set to each value. `
    + "Pale bands hold the middle 80 % of the rows' own curves: wide where the column acts together with others. "
    + `${page.hasRows ? "Grey steps are how many rows there are. " : ""}The line marks the row under “Try it”.`;
  const sorted = [...page.curves].sort((a, b) => page.columns[b.column].worth[k] - page.columns[a.column].worth[k]);
  const all = sorted.flatMap(each => [...each.mean[k], ...each.low[k], ...each.high[k]]);
  const limits = [Math.min(...all, 0), Math.max(...all, 0)];
  const whole = page.columns.reduce((sum, each) => sum + (each.worth[k] || 0), 0) || 1;
  const asked = at("find-effect").value.toLowerCase();
  const fits = sorted.filter(each => page.columns[each.column].name.toLowerCase().includes(asked));
  figures.length = 0;
  at("curves").replaceChildren(...fits.slice(0, curves).map(each => {
    const column = page.columns[each.column];
    const draw = column.levels ? levelsOf : curveOf;
    const some = column.levels && each.points.length < column.levels.length
      ? `, ${each.points.length} of ${column.levels.length} levels` : "";
    const made = draw(column, each, k, limits, `${column.name}, ${percent(column.worth[k] / whole)}${some}`);
    if (each.missing.length) made.append(element("p", { class: "note" }, `missing: ${signed(each.missing[k])}`));
    return made;
  }));
  at("find-effect-label").hidden = page.curves.length <= CURVES;
  at("more-curves").hidden = fits.length <= curves;
  at("more-curves").textContent = `Show all ${fits.length} columns`;
  const maps = page.maps.filter(each => each.value[k].flat().some(value => value));
  at("maps-part").hidden = !maps.length;
  const most = Math.max(...maps.flatMap(each => each.value[k].flat().map(Math.abs)), 1e-300);
  at("maps").replaceChildren(...maps.map(each => mapOf(each, k, most)));
}

function figure(caption, label, high, ...parts) {
  const said = element("output");
  const chart = drawn("svg", { viewBox: `0 0 ${WIDE} ${high}`, role: "img", tabindex: 0, "aria-label": label }, ...parts);
  return { made: element("figure", {}, element("figcaption", {}, caption), chart, said), chart, said };
}

function extremes(column, points, values) {
  const least = values.indexOf(Math.min(...values)), most = values.indexOf(Math.max(...values));
  return `effect of ${column.name}: least ${number(values[least])} at ${words(column, points[least])}, `
    + `largest ${number(values[most])} at ${words(column, points[most])}`;
}

function curveOf(column, { points, mean, low, high }, k, [bottom, top], caption) {
  const first = points[0], last = points[points.length - 1];
  const px = x => LEFT + (x - first) / (last - first || 1) * (WIDE - LEFT - RIGHT);
  const py = y => HIGH - BELOW - (y - bottom) / (top - bottom || 1) * (HIGH - TOP - BELOW);
  const path = values => values.map((y, i) => `${px(points[i]).toFixed(1)},${py(y).toFixed(1)}`);
  const steps = (column.steps ?? []).map((share, i, { length }) => drawn("rect", {
    class: "rows", x: LEFT + i / length * (WIDE - LEFT - RIGHT), width: (WIDE - LEFT - RIGHT) / length,
    y: HIGH - BELOW - 18 * share, height: 18 * share,
  }));
  const now = drawn("line", { class: "now", y1: TOP, y2: HIGH - BELOW });
  const spot = drawn("circle", { class: "point", r: 3.5, visibility: "hidden" });
  const { made, chart, said } = figure(caption, extremes(column, points, mean[k]), HIGH,
    ...steps,
    drawn("line", { class: "axis", x1: LEFT, x2: WIDE - RIGHT, y1: py(0), y2: py(0) }),
    drawn("polygon", { class: "band", points: [...path(low[k]), ...path(high[k]).reverse()].join(" ") }),
    drawn("polyline", { class: "curve", points: path(mean[k]).join(" ") }),
    now, spot,
    drawn("text", { x: LEFT, y: HIGH - 8 }, tick(column, first)),
    drawn("text", { x: WIDE - RIGHT, y: HIGH - 8, "text-anchor": "end" }, tick(column, last)),
    drawn("text", { x: LEFT - 4, y: py(top) + 8, "text-anchor": "end" }, number(top, 2)),
    drawn("text", { x: LEFT - 4, y: py(bottom), "text-anchor": "end" }, number(bottom, 2)));
  let i = Math.floor(points.length / 2);
  const tell = () => {
    spot.setAttribute("cx", px(points[i]));
    spot.setAttribute("cy", py(mean[k][i]));
    spot.setAttribute("visibility", "visible");
    said.textContent = `${words(column, points[i])}: ${signed(mean[k][i])} (${signed(low[k][i])} to ${signed(high[k][i])})`;
  };
  chart.addEventListener("pointermove", event => {
    const { left, width } = chart.getBoundingClientRect();
    const x = (event.clientX - left) / width * WIDE;
    i = points.reduce((best, point, j) => Math.abs(px(point) - x) < Math.abs(px(points[best]) - x) ? j : best, 0);
    tell();
  });
  chart.addEventListener("keydown", event => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    i = Math.min(Math.max(i + step, 0), points.length - 1);
    tell();
  });
  figures.push(x => {
    const value = x[column.at], isThere = value >= first && value <= last;
    now.setAttribute("visibility", isThere ? "visible" : "hidden");
    if (isThere) for (const end of ["x1", "x2"]) now.setAttribute(end, px(value));
  });
  return made;
}

function levelsOf(column, { points, mean, low, high }, k, [bottom, top], caption) {
  const line = 16, n = points.length, tall = n * line + 24, name = 96;
  const px = y => name + (y - bottom) / (top - bottom || 1) * (WIDE - name - RIGHT);
  const order = points.map((_, i) => i).sort((a, b) => mean[k][b] - mean[k][a]);
  const marks = new Map();
  let tell;
  const parts = order.flatMap((i, place) => {
    const y = place * line + 4, value = mean[k][i];
    const mark = drawn("circle", { class: "now", cx: 4, cy: y + 6, r: 3, visibility: "hidden" });
    marks.set(points[i], mark);
    const label = words(column, points[i]);
    const said = () => tell(`${label}: ${signed(value)} (${signed(low[k][i])} to ${signed(high[k][i])})`
      + (column.shares ? `, ${percent(column.shares[points[i]])} of the rows` : ""));
    return [
      mark,
      drawn("text", { x: name - 4, y: y + 10, "text-anchor": "end" }, label.length > 14 ? `${label.slice(0, 13)}…` : label),
      drawn("rect", { class: `bar${value < 0 ? " down" : ""}`, x: Math.min(px(0), px(value)), width: Math.abs(px(value) - px(0)), y, height: line - 4 }),
      drawn("line", { class: "whisker", x1: px(low[k][i]), x2: px(high[k][i]), y1: y + 6, y2: y + 6 }),
      drawn("rect", { x: 0, y, width: WIDE, height: line, opacity: 0, onpointerenter: said }, drawn("title", {}, label)),
    ];
  });
  const { made, said } = figure(caption, extremes(column, points, mean[k]), tall, ...parts,
    drawn("line", { class: "axis", x1: px(0), x2: px(0), y1: 0, y2: n * line }),
    drawn("text", { x: px(bottom), y: tall - 6 }, number(bottom, 2)),
    drawn("text", { x: WIDE - RIGHT, y: tall - 6, "text-anchor": "end" }, number(top, 2)));
  tell = text => { said.textContent = text; };
  figures.push(x => marks.forEach((mark, place) => mark.setAttribute("visibility", place === x[column.at] ? "visible" : "hidden")));
  return made;
}

function mapOf({ columns, points, value }, k, most) {
  const [one, two] = columns.map(i => page.columns[i]), values = value[k];
  const high = 210, wide = (WIDE - LEFT - RIGHT) / points[0].length, tall = (high - TOP - BELOW - 12) / points[1].length;
  let tell;
  const cells = values.flatMap((line, i) => line.map((each, j) => {
    const share = Math.min(Math.abs(each) / most, 1);
    const cell = drawn("rect", {
      class: `bar${each < 0 ? " down" : ""}`, opacity: share.toFixed(3), x: LEFT + i * wide, y: high - BELOW - 12 - (j + 1) * tall, width: wide, height: tall, "shape-rendering": "crispEdges",
      onpointerenter: () => tell(`${one.name} ${words(one, points[0][i])}, ${two.name} ${words(two, points[1][j])}: ${signed(each)}`),
    });
    return cell;
  }));
  const ends = list => [list[0], list[list.length - 1]];
  const short = (text, most = 12) => text.length > most ? `${text.slice(0, most - 1)}…` : text;
  const all = values.flat();
  const { made, said } = figure(`${one.name} and ${two.name}`, `${one.name} and ${two.name} together: from ${number(Math.min(...all))} to ${number(Math.max(...all))}`, high,
    drawn("rect", { class: "axis", fill: "none", x: LEFT, y: TOP, width: WIDE - LEFT - RIGHT, height: high - TOP - BELOW - 12 }),
    ...cells,
    ...ends(points[0]).map((value, i) => drawn("text", { x: i ? WIDE - RIGHT : LEFT, y: high - 20, "text-anchor": i ? "end" : "start" }, short(tick(one, value)))),
    ...ends(points[1]).map((value, i) => drawn("text", { x: LEFT - 4, y: i ? TOP + 10 : high - BELOW - 14, "text-anchor": "end" }, short(two.levels || two.clock ? tick(two, value) : number(value, 2), 7))),
    drawn("text", { x: (WIDE + LEFT) / 2, y: high - 6, "text-anchor": "middle" }, short(one.name)));
  tell = text => { said.textContent = text; };
  return made;
}

function showNow(x) {
  figures.forEach(show => show(x));
}

// ---- terms

const COLUMNS_OF_TERMS = {
  term: each => each.words,
  "largest size": each => each.size[state.output],
  "moves f by, on average": each => each.worth[state.output],
  "rows where it holds": each => each.share,
  "adds here": each => each.now,
};
let sortedBy = "moves f by, on average", isUp = false, shownTerms = TERMS;

function showTerms() {
  const rules = page.terms.filter(each => each.isRule).length;
  at("terms-note").textContent = `${page.terms.length} terms, of which ${rules} are rules. The largest size is how far a term can move f; “adds here” is compared with the typical row, or the row that you chose; `
    + "rules that hold in the row under “Try it” are highlighted.";
  const names = Object.keys(COLUMNS_OF_TERMS).filter(name => name !== "rows where it holds" || page.terms.some(each => each.share !== null));
  at("terms-table").tHead.rows[0].replaceChildren(...names.map(name => element("th", {
    scope: "col", class: name === "term" ? "" : "number",
    "aria-sort": name !== sortedBy ? "none" : isUp ? "ascending" : "descending",
  }, element("button", { type: "button", onclick: () => {
    isUp = name === sortedBy ? !isUp : name === "term";
    sortedBy = name;
    showTerms();
  } }, name + (name !== sortedBy ? "" : isUp ? " ▲" : " ▼")))));
  const key = COLUMNS_OF_TERMS[sortedBy], size = each => typeof key(each) === "number" ? (sortedBy === "adds here" ? Math.abs(key(each)) : key(each)) : key(each) ?? -1;
  const sorted = [...page.terms].sort((a, b) => (size(a) < size(b) ? -1 : size(a) > size(b) ? 1 : 0) * (isUp ? 1 : -1));
  at("terms-table").tBodies[0].replaceChildren(...sorted.slice(0, shownTerms).map(each => {
    const cells = names.map(name => name === "term"
      ? element("td", {}, each.isRule ? `if ${each.words}` : each.words)
      : element("td", { class: "number" }, name === "rows where it holds" ? (each.share === null ? "" : percent(each.share))
        : name === "adds here" ? (each.now ? signed(each.now) : "0") : number(COLUMNS_OF_TERMS[name](each), 3)));
    each.line = element("tr", each.isRule && each.holds ? { class: "held" } : {}, ...cells);
    return each.line;
  }));
  at("more-terms").hidden = sorted.length <= shownTerms;
  at("more-terms").textContent = `Show all ${sorted.length} terms`;
}

function showTermsNow(u, base) {
  const k = state.output, held = [];
  model.terms.forEach(([coef, phi], i) => {
    const each = page.terms[i], value = phi(u);
    each.now = coef[k] * (value - phi(base));
    each.holds = value !== 0;
    if (each.isRule && coef[k] * value) held.push([coef[k] * value, each.words]);
  });
  held.sort((a, b) => Math.abs(b[0]) - Math.abs(a[0]));
  at("rules").hidden = !page.terms.some(each => each.isRule);
  const shown = held.slice(0, ADDS).map(([value, said]) => element("li", {}, `${signed(value)} if ${said}`));
  if (held.length > ADDS) shown.push(element("li", {}, `and ${held.length - ADDS} more`));
  at("rules-now").replaceChildren(...shown);
  showTerms();
}

// ---- what is proved, and the sources

function showProved() {
  for (const [what, said] of page.proved)
    at("proved-lines").tBodies[0].append(element("tr", {}, element("th", { scope: "row" }, what), element("td", {}, said)));
}

function showSources() {
  for (const { name, call, text, why } of page.sources) {
    const code = name === "JavaScript" ? source : text;
    const said = element("span", { role: "status" });
    at("sources").append(element("details", {}, element("summary", {}, `${name} (${call})`),
      ...(code ? [element("p", {}, element("button", { type: "button", onclick: () => copy(code, said) }, `Copy the ${name}`), " ", said),
        element("pre", { tabindex: 0 }, code)] : [element("p", {}, why)])));
  }
}

async function copy(text, said) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = element("textarea", {}, text);
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  said.textContent = "copied";
  setTimeout(() => { said.textContent = ""; }, 2000);
}

// ---- the start

function showAll() {
  showEffects();
  showAnswer();
}

showWhat();
readLink();
state.base = [...typical];
showCells();
showProved();
showSources();
at("find-effect").addEventListener("input", showAll);
at("more-curves").addEventListener("click", () => { curves = Infinity; showAll(); });
at("more-terms").addEventListener("click", () => { shownTerms = Infinity; showTerms(); });
window.addEventListener("hashchange", () => {
  if (location.hash.startsWith("#row=")) {
    readLink();
    changed();
  }
});
showAll();
