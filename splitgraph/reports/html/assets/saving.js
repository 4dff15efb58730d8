// Saves the whole drawing as one SVG file, with the styles of the page in its elements: other programs know no CSS
// variables.

const SHAPE_STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity"];
const TEXT_STYLES = ["fill", "text-anchor", "font-family", "font-size", "font-weight", "font-style"];

function saveDrawing(page) {
  const text = new XMLSerializer().serializeToString(wholeDrawing(page.stage));
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  html("a", { href: address, download: `${page.data.title}.svg` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** All bands of the graph that is shown, below one another. */
function wholeDrawing(stage) {
  const layouts = stage.bands.map((band) => stage.layOut(band));
  const width = Math.ceil(Math.max(...layouts.map((layout) => layout.width)));
  const height = Math.ceil(layouts.reduce((sum, layout) => sum + layout.height, 0));
  const drawing = svg("svg", { xmlns: SVG_SPACE, width, height, viewBox: `0 0 ${width} ${height}` });
  // In the document, so that the styles of its elements are known.
  const shown = svg("svg", { class: "drawing unseen", "aria-hidden": true });
  document.body.append(shown);
  let top = 0;
  for (const layout of layouts) {
    const drawn = drawLayout(layout, stage.graph, stage.actions);
    drawn.setAttribute("transform", `translate(${round((width - layout.width) / 2)} ${round(top)})`);
    shown.replaceChildren(drawn);
    writeStyles(drawn);
    drawing.append(drawn);
    top += layout.height;
  }
  shown.remove();
  const ground = getComputedStyle(document.body).backgroundColor;
  drawing.prepend(svg("rect", { width, height, fill: ground }));
  return drawing;
}

/** Write the styles of an element and all in it as attributes. */
function writeStyles(drawn) {
  const elements = [drawn, ...drawn.querySelectorAll("*")];
  for (const element of elements) {
    const styles = getComputedStyle(element);
    const names = element.matches("text") ? TEXT_STYLES : element.matches("rect, path, circle") ? SHAPE_STYLES : [];
    for (const name of names) element.setAttribute(name, styles.getPropertyValue(name));
  }
  // All styles are known only as long as every element has its class.
  for (const element of elements)
    for (const name of ["tabindex", "role", "class", "data-key"]) element.removeAttribute(name);
}
