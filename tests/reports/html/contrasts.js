// Texts of the page, and names on the colours of functions, whose contrast is less than the 4.5 of WCAG 2.1, 1.4.3.
(() => {
  const canvas = document.createElement("canvas"), pen = canvas.getContext("2d", { willReadFrequently: true });
  const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const luminance = (colour) => {
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    const [red, green, blue] = [...pen.getImageData(0, 0, 1, 1).data].map((it) => linear(it / 255));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const ratio = (one, other) => {
    const [less, more] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (more + 0.05) / (less + 0.05);
  };
  const hasText = (element) => [...element.childNodes].some((it) => it.nodeType === 3 && it.textContent.trim());
  const found = [];
  for (const element of document.querySelectorAll("main *, header *, footer *")) {
    if (!hasText(element) || !element.offsetWidth) continue;
    let back = element;
    while (back && getComputedStyle(back).backgroundColor === "rgba(0, 0, 0, 0)") back = back.parentElement;
    const colours = [getComputedStyle(element).color, back ? getComputedStyle(back).backgroundColor : "white"];
    if (ratio(...colours) < 4.5) found.push([element.outerHTML.slice(0, 80), ...colours]);
  }
  const text = getComputedStyle(document.body).color;
  for (let i = 0; i < 2000; i++) {
    if (ratio(colourOf(`f${i}`), text) < 4.5) found.push([`f${i}`, colourOf(`f${i}`), text]);
  }
  return found;
})()
