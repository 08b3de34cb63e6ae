// Measures the page in the frame, and writes the result as JSON into the element `result`.

function channels(color) {
  const numbers = color.match(/[\d.]+/g).map(Number);
  return { rgb: numbers.slice(0, 3), alpha: numbers.length > 3 ? numbers[3] : 1 };
}

function luminance([red, green, blue]) {
  const linear = [red, green, blue].map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}

function contrast(one, other) {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

// The first background below a text that is not transparent.
function background(view, element) {
  for (let at = element; at; at = at.parentElement) {
    const { rgb, alpha } = channels(view.getComputedStyle(at).backgroundColor);
    if (alpha === 1) return rgb;
  }
  return [255, 255, 255];
}

function isShown(view, element) {
  const box = element.getBoundingClientRect();
  return box.width > 1 && box.height > 1 && view.getComputedStyle(element).visibility === 'visible';
}

function hasText(element) {
  return [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== '');
}

function describe(element) {
  return `<${element.tagName.toLowerCase()} class="${element.getAttribute('class') || ''}"> ${element.textContent.trim().slice(0, 60)}`;
}

function measure(frame) {
  const view = frame.contentWindow;
  const page = frame.contentDocument;
  for (const details of page.querySelectorAll('details')) details.open = true;
  const root = page.documentElement;
  let faintest = { value: 21, text: '' };
  for (const element of page.querySelectorAll('body *')) {
    if (!hasText(element) || !isShown(view, element) || element.closest('title, style, script')) continue;
    const style = view.getComputedStyle(element);
    const color = element.namespaceURI.endsWith('svg') ? style.fill : style.color;
    const value = contrast(channels(color).rgb, background(view, element));
    if (value < faintest.value) faintest = { value, text: describe(element) };
  }
  const wide = [...page.querySelectorAll('body *')].filter((element) => {
    return element.getBoundingClientRect().right > root.clientWidth + 1 && !element.closest('.scroll, pre, svg');
  });
  const requested = view.performance.getEntriesByType('resource').map((entry) => entry.name);
  return {
    title: page.title,
    scrollWidth: root.scrollWidth,
    widest: wide.slice(0, 3).map(describe),
    images: page.querySelectorAll('img, iframe, object, embed, link').length,
    requests: requested.length,
    requested,
    contrast: faintest.value,
    faintest: faintest.text,
    isDark: luminance(background(view, page.body)) < 0.5,
  };
}

const frame = document.querySelector('iframe');
frame.addEventListener('load', () => {
  let result;
  try {
    result = measure(frame);
  } catch (error) {
    result = { error: String(error) };
  }
  document.getElementById('result').textContent = JSON.stringify(result);
});
