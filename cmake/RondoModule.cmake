# rondo_module(NAME [SOURCES generated...] [USES modules...] [PRIVATE_USES modules...] [LINKS targets...] [PUBLIC_LINKS targets...])
#
# Makes the static library rondo_NAME of all sources in the folder and below it. USES names the modules that its public headers include, PRIVATE_USES those that
# its sources alone include. Its public headers live in include/rondo/NAME and are reached through an include directory
# that holds this one module (a link in the build tree). A module therefore sees the headers of the modules that it
# names and of those that their public headers include; an include of any other does not compile. NOT_HOT: it reads, writes or
# asks and searches nothing, so that -O1 does, with which the compiler takes three quarters of the time.
function(rondo_module name)
  cmake_parse_arguments(ARG "NOT_HOT" "" "SOURCES;USES;PRIVATE_USES;LINKS;PUBLIC_LINKS" ${ARGN})
  set(view ${PROJECT_BINARY_DIR}/views/${name})
  file(MAKE_DIRECTORY ${view}/rondo)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/include/rondo/${name} ${view}/rondo/${name} SYMBOLIC)
  list(TRANSFORM ARG_USES PREPEND rondo_)
  list(TRANSFORM ARG_PRIVATE_USES PREPEND rondo_)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cpp)
  add_library(rondo_${name} STATIC ${sources} ${ARG_SOURCES})
  target_include_directories(rondo_${name} PUBLIC $<BUILD_INTERFACE:${view}> PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(rondo_${name} PUBLIC ${ARG_USES} ${ARG_PUBLIC_LINKS}
                                      PRIVATE ${ARG_PRIVATE_USES} $<BUILD_INTERFACE:rondo_options> ${ARG_LINKS})
  if(ARG_NOT_HOT)
    target_compile_options(rondo_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
endfunction()
