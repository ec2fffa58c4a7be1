// A long list of rows of the same height, of which only the visible ones are in the page.

const SPARE_ROWS = 8;

// `row` makes the node of the row at a place.
function longList(frame, holder, pixels, row) {
  const drawn = new Map(); // by place
  let n = 0;

  function put(place) {
    const node = row(place);
    node.style.top = `${place * pixels}px`;
    drawn.set(place, node);
    return node;
  }

  function draw() {
    const first = Math.max(0, Math.floor(frame.scrollTop / pixels) - SPARE_ROWS);
    const stop = Math.min(n, Math.ceil((frame.scrollTop + frame.clientHeight) / pixels) + SPARE_ROWS);
    for (const [place, node] of drawn) {
      if (place >= first && place < stop) continue;
      node.remove();
      drawn.delete(place);
    }
    for (let place = first; place < stop; place++) {
      if (!drawn.has(place)) holder.append(put(place));
    }
  }

  function reset(length) {
    n = length;
    drawn.clear();
    holder.replaceChildren();
    holder.style.height = `${n * pixels}px`;
    draw();
  }

  function refresh(place) {
    drawn.get(place)?.replaceWith(put(place));
  }

  // `above`: the height of what covers the top of the frame.
  function reveal(place, above = 0) {
    const top = place * pixels;
    const height = frame.clientHeight - above;
    if (top < frame.scrollTop) frame.scrollTop = top;
    else if (top + pixels > frame.scrollTop + height) frame.scrollTop = top + pixels - height;
    draw();
  }

  // Mark the chosen row, which assistive technology reads as the focus of the frame.
  function mark(chosen) {
    for (const [place, node] of drawn) node.setAttribute("aria-selected", String(place === chosen));
    if (drawn.has(chosen)) frame.setAttribute("aria-activedescendant", drawn.get(chosen).id);
    else frame.removeAttribute("aria-activedescendant");
  }

  function listen(onDraw) {
    const redraw = () => {
      draw();
      onDraw();
    };
    frame.addEventListener("scroll", () => requestAnimationFrame(redraw), { passive: true });
    new ResizeObserver(redraw).observe(frame);
  }

  return { reset, refresh, reveal, mark, listen };
}
