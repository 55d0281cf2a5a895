# rondo_module(NAME SOURCES ... [USES modules...] [LINKS targets...] [PUBLIC_LINKS targets...])
#
# Makes the static library rondo_NAME. Its public headers live in include/rondo/NAME and are reached through an
# include directory that holds this one module (a link in the build tree), so that a module which includes a header of
# a module outside USES does not compile.
function(rondo_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;LINKS;PUBLIC_LINKS" ${ARGN})
  set(view ${PROJECT_BINARY_DIR}/views/${name})
  file(MAKE_DIRECTORY ${view}/rondo)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/include/rondo/${name} ${view}/rondo/${name} SYMBOLIC)
  add_library(rondo_${name} STATIC ${ARG_SOURCES})
  target_include_directories(rondo_${name} PUBLIC ${view} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(rondo_${name} PUBLIC ${ARG_PUBLIC_LINKS} PRIVATE rondo_options ${ARG_LINKS})
  foreach(used IN LISTS ARG_USES)
    target_link_libraries(rondo_${name} PUBLIC rondo_${used})
  endforeach()
endfunction()
