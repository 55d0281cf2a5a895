#include "rondo/pictures/plot_page.hpp"

#include <fmt/format.h>

#include "page_files.hpp"
#include "text.hpp"

namespace rondo::pictures {
namespace {

std::string paragraphs(const std::vector<std::string>& sentences) {
  std::string html;
  for (const std::string& sentence : sentences) html += fmt::format("<p>{}</p>\n", markup(sentence));
  return html;
}

std::string html_table(const std::vector<std::vector<std::string>>& rows) {
  std::string html = "<table>\n";
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const char* cell = r == 0 ? "th" : "td";
    html += "<tr>";
    for (const std::string& text : rows[r]) html += fmt::format("<{0}>{1}</{0}>", cell, markup(text));
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

}  // namespace

std::string html_of(const std::string& title, const std::vector<std::string>& sentences,
                    const std::vector<PlotSection>& sections) {
  std::string body;
  for (const PlotSection& section : sections) {
    body += fmt::format("<section>\n<h2>{}</h2>\n{}{}{}</section>\n", markup(section.heading),
                        html_table(section.table), paragraphs(section.sentences), svg_of(section.plots));
  }
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "img-src data:\">\n<link rel=\"icon\" href=\"data:,\">\n"
      "<title>{0}</title>\n<style>{1}th {{ padding: 1px 10px; text-align: right; }}\n"
      "th:first-child {{ text-align: left; }}\n</style>\n</head>\n<body>\n"
      "<h1>{0}</h1>\n{2}{3}</body>\n</html>\n",
      markup(title), kPageStyle, paragraphs(sentences), body);
}

}  // namespace rondo::pictures
