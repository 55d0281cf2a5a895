"use strict";
// ---- The schedule: columns in base64, little-endian, as html.cpp writes them.
const data = JSON.parse(document.getElementById("data").textContent);
const unpack = (text, Type) =>
  new Type(Uint8Array.from(atob(text), letter => letter.charCodeAt(0)).buffer);
const u32 = text => unpack(text, Uint32Array), f32 = text => unpack(text, Float32Array);
const links = { src: u32(data.links.src), dst: u32(data.links.dst), gbps: f32(data.links.gbps),
  latency: f32(data.links.latency), bytes: f32(data.links.bytes), busy: f32(data.links.busy),
  sends: u32(data.links.sends), drawn: unpack(data.links.drawn, Int32Array) };
const sends = { link: u32(data.sends.link), chunk: u32(data.sends.chunk), start: f32(data.sends.start),
  end: f32(data.sends.end), arrival: f32(data.sends.arrival),
  share: data.sends.share && unpack(data.sends.share, Uint8Array),  // of the link, in 255ths; absent: all of it
  adds: data.sends.adds && unpack(data.sends.adds, Uint8Array),
  sources: data.sends.sources && unpack(data.sends.sources, Uint16Array) };
const chunks = { id: u32(data.chunks.id), origin: u32(data.chunks.origin), wanted: u32(data.chunks.wanted),
  bytes: f32(data.chunks.bytes), sources: data.chunks.sources && u32(data.chunks.sources) };
const bins = unpack(data.bins.shares, Uint8Array);
const rows = data.rows.map(([label, members]) => ({ label, links: members, sends: [], lane: new Map() }));
const rowOf = new Int32Array(links.src.length);
rows.forEach((row, r) => row.links.forEach((l, lane) => { rowOf[l] = r; row.lane.set(l, lane); }));
const ofChunk = chunks.id.length ? Array.from(chunks.id, () => []) : [];
for (let s = 0; s < sends.link.length; ++s) {  // by start
  rows[rowOf[sends.link[s]]].sends.push(s);
  ofChunk[sends.chunk[s]].push(s);
}
const shareOf = s => sends.share ? sends.share[s] / 255 : 1;
const isAdded = s => sends.adds !== undefined && sends.adds[s] === 1;
const isSum = chunk => chunks.sources !== undefined && chunks.sources[chunk] > 1;

// Sends that share a link stand on each other: parts of sends, by start, that end where what is below them changes.
function stack(mine) {
  const parts = [], times = [...new Set(mine.flatMap(s => [sends.start[s], sends.end[s]]))].sort((a, b) => a - b);
  let active = [], next = 0, latest = new Map();
  for (let t = 0; t + 1 < times.length; ++t) {
    active = active.filter(s => sends.end[s] > times[t]);
    while (next < mine.length && sends.start[mine[next]] <= times[t]) active.push(mine[next++]);
    const now = new Map();
    let low = 0;
    for (const s of active) {
      let part = latest.get(s);
      if (part && part.low === low) part.to = times[t + 1];
      else parts.push(part = { s, from: times[t], to: times[t + 1], low });
      now.set(s, part);
      low += shareOf(s);
    }
    latest = now;
  }
  return parts;
}
if (sends.share && data.sends.complete && rows.length === rowOf.length) {
  for (const row of rows) row.parts = stack(row.sends);
}
const whole = s => ({ s, from: sends.start[s], to: sends.end[s], low: 0 });
const partsOf = s => rows[rowOf[sends.link[s]]].parts?.filter(part => part.s === s) ?? [whole(s)];
const chunkIndex = new Map(Array.from(chunks.id, (id, i) => [id, i]));

// ---- Words
const byId = id => document.getElementById(id);
const number = value => Number(value.toPrecision(6)).toLocaleString("en-US", { maximumSignificantDigits: 6 });
const size = bytes => {
  let unit = 0;
  while (unit < 3 && bytes >= 999.95) { bytes /= 1000; ++unit; }
  return Number(bytes.toPrecision(4)) + " " + ["B", "KB", "MB", "GB"][unit];
};
const linkName = l => data.nodes[links.src[l]] + " → " + data.nodes[links.dst[l]];
const sumWords = s => (sends.sources[s] === chunks.sources[sends.chunk[s]] ? "the whole sum"
  : `the sum of ${sends.sources[s]} of ${chunks.sources[sends.chunk[s]]}`) + (isAdded(s) ? ", which is added" : "");
const whatWords = s => isSum(sends.chunk[s]) ? sumWords(s) : `of ${data.nodes[chunks.origin[sends.chunk[s]]]}`;
const sendWords = s => `chunk ${chunks.id[sends.chunk[s]]}, ${whatWords(s)}, ` +
  `${linkName(sends.link[s])}, ${number(sends.start[s])} to ${number(sends.end[s])} us, ` +
  `arrives at ${number(sends.arrival[s])} us`;

// ---- Colours
const shareColour = share => data.colours[share < 0.01 ? 0
  : Math.min(data.colours.length - 1, Math.max(1, Math.ceil((share - 0.005) * (data.colours.length - 1))))];
const originColour = node => `hsl(${(node * 137.508) % 360},60%,${[52, 42, 62][node % 3]}%)`;
const wayColour = "#c2185b";
byId("legend").innerHTML = "<span>idle</span>" +
  data.colours.map(colour => `<i style="background:${colour}"></i>`).join("") + "<span>always busy</span>";

// ---- The timeline
const labelWidth = 200, rowHeight = 15, axisHeight = 26;
const view = { from: 0, to: data.end_us, row: -1, send: -1, hover: -1, kept: -1 };
const axisCanvas = byId("axis"), rowsCanvas = byId("rows"), timeline = byId("timeline");
let width = 0;
const x = us => labelWidth + (us - view.from) / (view.to - view.from) * (width - labelWidth);
const timeAt = px => view.from + (px - labelWidth) / (width - labelWidth) * (view.to - view.from);

function fit(canvas, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = height + "px";
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "11px Helvetica, Arial, sans-serif";
  return pen;
}

function ticks() {
  const rough = (view.to - view.from) / Math.max(2, Math.floor((width - labelWidth) / 110));
  let step = 10 ** Math.floor(Math.log10(rough));
  for (const factor of [2, 2.5, 2]) if (step < rough) step *= factor;
  const all = [];
  for (let i = Math.ceil(view.from / step); i * step <= view.to; ++i) all.push(i * step);
  return all;
}

// The first of a row's sends that may reach into the view; those that have a link alone do not overlap.
function firstVisible(row) {
  if (row.links.length > 1 || sends.share) return 0;
  let low = 0, high = row.sends.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sends.end[row.sends[middle]] <= view.from) low = middle + 1; else high = middle;
  }
  return low;
}

function* visible(row) {
  for (let i = firstVisible(row); i < row.sends.length; ++i) {
    const s = row.sends[i];
    if (sends.start[s] >= view.to) return;
    if (sends.end[s] > view.from) yield s;
  }
}

// Sends one by one, or how busy the links are: alike in all rows. Sends of several links would hide each other.
function singly(shown) {
  return data.sends.complete && rows.length === rowOf.length &&
    shown.every(mine => mine.length * 4 < width - labelWidth);
}

// Where the bar of a part is in a row.
function heightOf(s, low, top, height) {
  const high = Math.max(1.5, height * Math.min(1, shareOf(s)));
  return { y: top + height * (1 - Math.min(1, low)) - high, high };
}

function drawRow(pen, row, r, shown, oneByOne) {
  const top = r * rowHeight + 1, height = rowHeight - 2, right = width - labelWidth;
  if (oneByOne) {
    const parts = row.parts ?? shown.map(whole);
    for (const { s, from, to, low } of parts) {
      if (to <= view.from || from >= view.to) continue;
      const left = Math.max(labelWidth, x(from)), long = Math.max(0.5, Math.min(width, x(to)) - left - 0.4);
      const { y, high } = heightOf(s, low, top, height);
      pen.fillStyle = originColour(chunks.origin[sends.chunk[s]]);
      pen.globalAlpha = isAdded(s) ? 0.4 : 1;
      pen.fillRect(left, y, long, high);
      pen.globalAlpha = 1;
      if (isAdded(s)) pen.fillRect(left, y + high - 1.5, long, 1.5);
    }
    return;
  }
  const columns = Math.max(1, Math.floor(right / 2));  // two pixels each
  const busy = new Float64Array(columns);
  if (data.sends.complete) {
    const scale = columns / (view.to - view.from);
    for (const s of shown) {
      const a = Math.max(0, (sends.start[s] - view.from) * scale), b = Math.min(columns, (sends.end[s] - view.from) * scale);
      for (let c = Math.floor(a); c < b; ++c) busy[c] += shareOf(s) * (Math.min(b, c + 1) - Math.max(a, c));
    }
    for (let c = 0; c < columns; ++c) busy[c] /= row.links.length;
  } else {
    for (let c = 0; c < columns; ++c) {
      const us = view.from + (c + 0.5) / columns * (view.to - view.from);
      busy[c] = bins[r * data.bins.count + Math.min(data.bins.count - 1, Math.floor(us / data.end_us * data.bins.count))] / 255;
    }
  }
  for (let c = 0; c < columns;) {
    const colour = shareColour(busy[c]);
    let next = c + 1;
    while (next < columns && shareColour(busy[next]) === colour) ++next;
    if (colour !== data.colours[0]) {
      pen.fillStyle = colour;
      pen.fillRect(labelWidth + c / columns * right, top, (next - c) / columns * right, height);
    }
    c = next;
  }
}

function drawWay(pen, chunk) {
  pen.fillStyle = wayColour;
  for (const s of ofChunk[chunk]) {
    if (sends.end[s] <= view.from || sends.start[s] >= view.to) continue;
    const row = rows[rowOf[sends.link[s]]], lanes = row.links.length;
    const height = Math.max(3, (rowHeight - 2) / lanes);
    const top = rowOf[sends.link[s]] * rowHeight + 1 + row.lane.get(sends.link[s]) / lanes * (rowHeight - 2 - (lanes > 1 ? height : 0));
    for (const { from, to, low } of partsOf(s)) {
      if (to <= view.from || from >= view.to) continue;
      const bar = row.parts ? heightOf(s, low, top, height) : { y: top, high: height };
      const left = Math.max(labelWidth, x(from));
      pen.fillRect(left, bar.y, Math.max(2.5, Math.min(width, x(to)) - left), bar.high);
    }
  }
}

function line(pen, us, height, colour, dash) {
  if (us < view.from || us > view.to) return;
  pen.strokeStyle = colour;
  pen.setLineDash(dash);
  pen.beginPath();
  pen.moveTo(x(us), 0);
  pen.lineTo(x(us), height);
  pen.stroke();
  pen.setLineDash([]);
}

function draw() {
  width = timeline.clientWidth;
  const height = rows.length * rowHeight;
  const head = fit(axisCanvas, axisHeight), pen = fit(rowsCanvas, height);
  for (const us of ticks()) {
    line(pen, us, height, "#e1e5eb", []);
    head.textAlign = x(us) > width - 30 ? "right" : "center";
    head.fillStyle = "#333";
    head.fillText(number(us), x(us), 17);
  }
  head.textAlign = "right";
  if (labelWidth > 60) head.fillText("time, us", labelWidth - 24, 17);
  const shown = rows.map(row => data.sends.complete ? [...visible(row)] : []);
  const oneByOne = singly(shown);
  rows.forEach((row, r) => {
    if (r === view.row) {
      pen.fillStyle = "#fde7d8";
      pen.fillRect(0, r * rowHeight, width, rowHeight);
    }
    drawRow(pen, row, r, shown[r], oneByOne);
    pen.fillStyle = "#222";
    pen.textAlign = "right";
    pen.fillText(row.label, labelWidth - 6, r * rowHeight + 11, labelWidth - 10);
  });
  head.fillStyle = "#8a5a00";
  for (const [, end] of data.rounds) if (end >= view.from && end <= view.to) head.fillRect(x(end), axisHeight - 6, 1, 6);
  line(pen, data.finish_us, height, "#111", []);
  if (data.bound_us) line(pen, data.bound_us, height, "#b3261e", [5, 3]);
  const chunk = view.kept >= 0 ? view.kept : view.hover;
  if (chunk >= 0) drawWay(pen, chunk);
  if (view.send >= 0) {
    const s = view.send, r = rowOf[sends.link[s]];
    pen.strokeStyle = "#111";
    pen.lineWidth = 2;
    pen.strokeRect(x(sends.start[s]), r * rowHeight + 1, Math.max(2, x(sends.end[s]) - x(sends.start[s])), rowHeight - 2);
    pen.lineWidth = 1;
  }
}
let asked = false;
function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; draw(); });
}

// ---- A chunk's way: timeline, fabric, words
const drawnLinks = new Map([...document.querySelectorAll(".fabric [data-link]")].map(e => [Number(e.dataset.link), e]));
function showWay() {
  const chunk = view.kept >= 0 ? view.kept : view.hover;
  const on = new Set(chunk < 0 ? [] : ofChunk[chunk].map(s => links.drawn[sends.link[s]]));
  for (const [drawn, element] of drawnLinks) {
    element.classList.toggle("way", on.has(drawn));
    element.classList.toggle("faded", chunk >= 0 && !on.has(drawn));
  }
  redraw();
  if (chunk < 0) {
    byId("way-words").textContent = "Point at a send, or give the number of a chunk above.";
    byId("way").replaceChildren();
    return;
  }
  const mine = ofChunk[chunk], last = mine.reduce((most, s) => Math.max(most, sends.arrival[s]), 0);
  const origin = data.nodes[chunks.origin[chunk]];
  const whose = isSum(chunk) ? `, the sum of ${chunks.sources[chunk]} GPUs' data, whole at ${origin} first` : ` that start at ${origin}`;
  byId("way-words").textContent = `Chunk ${chunks.id[chunk]}: ${size(chunks.bytes[chunk])}${whose}, wanted by ${chunks.wanted[chunk]} GPU${chunks.wanted[chunk] === 1 ? "" : "s"}; ${mine.length} sends, the last one arrives at ${number(last)} us.`;
  const most = 400;
  const items = mine.slice(0, most).map(s => Object.assign(document.createElement("li"),
    { textContent: `${number(sends.start[s])} us: ${linkName(sends.link[s])}, there at ${number(sends.arrival[s])} us` +
      (isSum(chunk) ? `: ${sumWords(s)}` : "") }));
  if (mine.length > most) items.push(Object.assign(document.createElement("li"), { textContent: `and ${mine.length - most} more` }));
  byId("way").replaceChildren(...items);
}
function keep(chunk) {
  view.kept = chunk;
  view.hover = -1;
  if (chunk < 0) view.send = -1;
  byId("chunk").value = chunk < 0 ? "" : chunks.id[chunk];
  showWay();
}
const say = text => { byId("status").textContent = text; };

// ---- Moving about
function show(from, to) {
  const least = data.end_us * 1e-6, span = Math.min(data.end_us, Math.max(least, to - from));
  view.from = Math.max(0, Math.min(from, data.end_us - span));
  view.to = view.from + span;
  redraw();
}
const middle = () => view.send < 0 ? (view.from + view.to) / 2 : (sends.start[view.send] + sends.end[view.send]) / 2;
function zoom(factor, around = middle()) {
  show(around - (around - view.from) * factor, around + (view.to - around) * factor);
}
const sayView = () => say(`Showing ${number(view.from)} to ${number(view.to)} us.`);
const pan = share => { show(view.from + share * (view.to - view.from), view.to + share * (view.to - view.from)); sayView(); };
byId("zoom-in").onclick = () => { zoom(0.5); sayView(); };
byId("zoom-out").onclick = () => { zoom(2); sayView(); };
byId("earlier").onclick = () => pan(-0.25);
byId("later").onclick = () => pan(0.25);
byId("all").onclick = () => { show(0, data.end_us); sayView(); };
byId("release").onclick = () => { keep(-1); say("No chunk is kept."); };
byId("chunk").max = data.chunks.total - 1;
byId("chunk").onchange = event => {
  if (event.target.value === "") return keep(-1);
  const chunk = chunkIndex.get(Number(event.target.value));
  if (chunk !== undefined) { keep(chunk); say(byId("way-words").textContent); }
  else say(data.sends.complete ? `There is no chunk ${event.target.value}; chunks are 0 to ${data.chunks.total - 1}.`
    : `Chunk ${event.target.value} is not among those in this page; the next one that is: ` +
      `${chunks.id.find(id => id > Number(event.target.value)) ?? chunks.id[0]}.`);
};

const rowWords = r => {
  const busy = rows[r].links.reduce((sum, l) => sum + links.busy[l], 0) / rows[r].links.length;
  return `${rows[r].label}: ${rows[r].links.length > 1 ? rows[r].links.length + " links, " : ""}busy ${(100 * busy / data.end_us).toFixed(1)} % of the time`;
};
function chooseRow(r) {
  view.row = Math.max(0, Math.min(rows.length - 1, r));
  view.send = -1;
  say(rowWords(view.row) + ".");
  const top = rowsCanvas.getBoundingClientRect().top + view.row * rowHeight;
  if (top < 60 || top > innerHeight - 60) scrollBy(0, top - innerHeight / 2);
  redraw();
}
function stepSend(direction) {
  if (view.row < 0) chooseRow(0);
  const mine = rows[view.row].sends;
  if (!mine.length) return say(rowWords(view.row) + "; no sends of it are in this page.");
  let at = mine.indexOf(view.send);
  at = at < 0 ? mine.findIndex(s => sends.end[s] > view.from) : at + direction;
  view.send = mine[Math.max(0, Math.min(mine.length - 1, at))];
  const s = view.send, span = view.to - view.from;
  if (sends.start[s] < view.from || sends.end[s] > view.to) show(sends.start[s] - span / 4, sends.start[s] + span * 0.75);
  view.hover = sends.chunk[s];
  say(sendWords(s) + ".");
  showWay();
}
timeline.onkeydown = event => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const actions = { ArrowLeft: () => pan(-0.1), ArrowRight: () => pan(0.1), "+": () => byId("zoom-in").click(),
    "=": () => byId("zoom-in").click(), "-": () => byId("zoom-out").click(), "0": () => byId("all").click(),
    ArrowUp: () => chooseRow(view.row - 1), ArrowDown: () => chooseRow(view.row + 1), n: () => stepSend(1),
    p: () => stepSend(-1), Enter: () => { if (view.send >= 0) keep(sends.chunk[view.send]); },
    Escape: () => byId("release").click() };
  if (!actions[event.key]) return;
  actions[event.key]();
  event.preventDefault();
};

// What is under the mouse: a row, and the send there if it is in the page.
function under(event) {
  const box = rowsCanvas.getBoundingClientRect();
  const r = Math.floor((event.clientY - box.top) / rowHeight), us = timeAt(event.clientX - box.left);
  if (r < 0 || r >= rows.length) return { r: -1, s: -1 };
  const slack = 2 / width * (view.to - view.from);
  let found = -1;
  if (event.clientX - box.left >= labelWidth) {
    for (const s of visible(rows[r])) {
      if (sends.start[s] - slack > us) break;
      if (sends.end[s] + slack >= us) found = s;
    }
    // Of those that share the link the one at this height.
    const level = 1 - (event.clientY - box.top - r * rowHeight - 1) / (rowHeight - 2);
    found = rows[r].parts?.find(part => part.from <= us && us < part.to && part.low <= level &&
      level < part.low + shareOf(part.s))?.s ?? found;
  }
  return { r, s: found, us };
}
let drag = null;
rowsCanvas.onpointerdown = event => {
  drag = { px: event.clientX, from: view.from, to: view.to, moved: false };
  rowsCanvas.setPointerCapture(event.pointerId);
};
rowsCanvas.onpointermove = event => {
  if (drag) {
    const shift = (drag.px - event.clientX) / (width - labelWidth) * (drag.to - drag.from);
    drag.moved = drag.moved || Math.abs(event.clientX - drag.px) > 3;
    if (drag.moved) show(drag.from + shift, drag.to + shift);
    return;
  }
  const { r, s } = under(event), tip = byId("tip");
  tip.hidden = r < 0;
  if (r >= 0) {
    tip.textContent = s >= 0 ? sendWords(s) : rowWords(r);
    tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 10) + "px";
    tip.style.top = Math.min(event.clientY + 16, innerHeight - tip.offsetHeight - 10) + "px";
  }
  const chunk = s >= 0 ? sends.chunk[s] : -1;
  if (chunk !== view.hover && view.kept < 0) { view.hover = chunk; showWay(); }
};
rowsCanvas.onpointerup = event => {
  const moved = drag && drag.moved;
  drag = null;
  if (moved) return;
  const { r, s } = under(event);
  if (r >= 0) chooseRow(r);
  keep(s >= 0 ? sends.chunk[s] : -1);
};
rowsCanvas.onpointercancel = () => { drag = null; };
rowsCanvas.onpointerleave = () => {
  byId("tip").hidden = true;
  if (view.hover >= 0 && view.kept < 0 && view.send < 0) { view.hover = -1; showWay(); }
};
timeline.addEventListener("wheel", event => {
  if (!event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  zoom(event.deltaY > 0 ? 1.25 : 0.8, timeAt(event.clientX - rowsCanvas.getBoundingClientRect().left));
}, { passive: false });
addEventListener("resize", redraw);

// ---- The table of links
const columns = [["Link", linkName], ["GB/s", l => links.gbps[l]], ["Latency, us", l => links.latency[l]],
  ["Bytes", l => links.bytes[l]], ["Sends", l => links.sends[l]], ["Busy", l => links.busy[l]]];
const order = { column: 5, down: true, most: 100 };
function fillTable() {
  const key = columns[order.column][1], sign = order.down ? -1 : 1;
  const sorted = Array.from(links.src.keys());
  sorted.sort((a, b) => sign * (order.column ? key(a) - key(b) : key(a).localeCompare(key(b), "en", { numeric: true })) || a - b);
  byId("links").replaceChildren(...sorted.slice(0, order.most).map(l => {
    const row = document.createElement("tr"), share = links.busy[l] / data.end_us;
    const texts = [linkName(l), number(links.gbps[l]), number(links.latency[l]), size(links.bytes[l]), String(links.sends[l])];
    row.append(...texts.map(text => Object.assign(document.createElement("td"), { textContent: text })));
    const busy = document.createElement("td");
    busy.innerHTML = `<span class="bar" aria-hidden="true"><i style="width:${Math.min(100, 100 * share)}%;background:${shareColour(share)}"></i></span>`;
    busy.append(Object.assign(document.createElement("span"), { className: "share", textContent: (100 * share).toFixed(1) + " %" }));
    row.append(busy);
    return row;
  }));
  byId("more").hidden = sorted.length <= order.most;
  byId("more").textContent = `Show all ${sorted.length} links`;
  [...byId("headings").children].forEach((th, c) =>
    th.setAttribute("aria-sort", c !== order.column ? "none" : order.down ? "descending" : "ascending"));
}
columns.forEach(([title], c) => {
  const th = document.createElement("th"), button = document.createElement("button");
  th.scope = "col";
  button.type = "button";
  button.textContent = title;
  button.onclick = () => { order.down = order.column === c ? !order.down : c > 0; order.column = c; fillTable(); };
  th.append(button);
  byId("headings").append(th);
});
byId("more").onclick = () => { order.most = Infinity; fillTable(); };

draw();
fillTable();
document.documentElement.dataset.ready = Math.round(performance.now());
