#include "runtime/planner/html_page.hpp"

#include "plans/simulate/timeline.hpp"
#include "runtime/base/human_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::runtime {

namespace {

constexpr const char* page_style = R"css(
:root { --back: #ffffff; --fore: #1c2024; --quiet: #60676c; --line: #d7dbdf;
  --soft: #f1f3f5; --accent: #0b68cb; color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root { --back: #151718; --fore: #ecedee;
  --quiet: #9ba1a6; --line: #313538; --soft: #202425; --accent: #52a9ff; } }
body { max-width: 1120px; margin: 20px auto; padding: 0 16px; color: var(--fore);
  background: var(--back); font: 14px/1.5 system-ui, sans-serif; }
h1 { font-size: 20px; } h2 { font-size: 16px; margin: 28px 0 6px; }
pre { background: var(--soft); padding: 10px; border-radius: 6px; overflow-x: auto;
  font-size: 12px; }
.step { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; }
.bars { display: grid; grid-template-columns: max-content 1fr; gap: 4px 12px; }
.bar { background: var(--accent); height: 12px; border-radius: 2px; min-width: 2px; }
.value { display: flex; align-items: center; gap: 8px; }
.quiet { color: var(--quiet); white-space: nowrap; }
)css";

std::string html_text(const std::string& text) {
  std::string safe;
  for (const char letter : text)
    if (letter == '<')
      safe += "&lt;";
    else if (letter == '>')
      safe += "&gt;";
    else if (letter == '&')
      safe += "&amp;";
    else if (letter == '"')
      safe += "&quot;";
    else
      safe += letter;
  return safe;
}

} // namespace

void HtmlPage::heading(const std::string& text) {
  body_ += "<h2>" + html_text(text) + "</h2>\n";
}

void HtmlPage::paragraph(const std::string& text) {
  body_ += "<p>" + html_text(text) + "</p>\n";
}

void HtmlPage::preformatted(const std::string& text) {
  body_ += "<pre>" + html_text(text) + "</pre>\n";
}

void HtmlPage::bars(const std::vector<HtmlBar>& bars, const std::string& unit) {
  constexpr double widest = 75; // per cent; the rest is for the number
  double most = 0;
  for (const auto& bar : bars)
    most = std::max(most, bar.value);
  body_ += "<div class=\"bars\">\n";
  for (const auto& bar : bars)
    body_ += fmt::format(
      "<span>{}</span><span class=\"value\"><span class=\"bar\" "
      "style=\"width:{:.1f}%\"></span><span class=\"quiet\">{} {}{}"
      "</span></span>\n",
      html_text(bar.label), most > 0 ? widest * bar.value / most : 0,
      three_digits(bar.value), html_text(unit),
      bar.note.empty() ? "" : ", " + html_text(bar.note));
  body_ += "</div>\n";
}

void HtmlPage::step(const std::string& caption, const plans::Simulation& run) {
  heading(caption);
  // a shadow root keeps the colours of one picture out of the others
  body_ += "<div class=\"step\"><template shadowrootmode=\"open\">"
           + plans::svg_timeline(run) + "</template></div>\n";
  double intra = 0, inter = 0;
  for (const auto& move : run.moved) {
    intra += move.intra;
    inter += move.inter;
  }
  if (intra + inter > 0) {
    paragraph("bytes that weights move per step, by link");
    bars({{"inside nodes", intra / 1e9}, {"between nodes", inter / 1e9}}, "GB");
  }
}

std::string HtmlPage::print() const {
  return fmt::format(
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, "
    "initial-scale=1\">\n<title>{0}</title>\n<style>{1}</style>\n</head>\n"
    "<body>\n<h1>{0}</h1>\n{2}</body>\n</html>\n",
    html_text(title_), page_style, body_);
}

} // namespace troupe::runtime
