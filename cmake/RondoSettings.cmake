# Compiler settings: rondo_options.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

# About 200 programs are linked, in less than half of the time.
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()

add_library(rondo_options INTERFACE)
# -ffp-contract=off: the same arithmetic in every build, hence the same schedule.
target_compile_options(rondo_options INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -ffp-contract=off)
# GCC 12 collects garbage for a tenth of its time, a sixth where it instruments, unless it may hold a GB.
add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1048576>)
if(RONDO_WARNINGS_AS_ERRORS)
  target_compile_options(rondo_options INTERFACE -Werror)
endif()
if(RONDO_SANITIZE)
  # Null pointers and objects read beyond their end stop the address sanitizer as well, misaligned ones and wrong
  # dynamic types come from casts that this code does not make: these four checks are half of the compiler's work.
  # GCC 12 warns of uninitialised memory inside the standard library when it instruments.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=null,object-size,alignment,vptr
                      -fno-omit-frame-pointer -fno-sanitize-recover=undefined
                      $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  add_link_options(-fsanitize=address,undefined)
endif()
if(RONDO_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
