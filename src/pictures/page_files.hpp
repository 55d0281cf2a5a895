#pragma once

namespace rondo::pictures {

/// The texts of page.html, page.css and page.js, put into the program by CMake.
extern const char* const kPageHtml;
extern const char* const kPageStyle;
extern const char* const kPageScript;

}  // namespace rondo::pictures
