# Compiler settings (rondo_options) and the packages of Debian 12, each found once.
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

add_library(rondo_options INTERFACE)
# -ffp-contract=off: the same arithmetic in every build, hence the same schedule.
target_compile_options(rondo_options INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -ffp-contract=off)
if(RONDO_WARNINGS_AS_ERRORS)
  target_compile_options(rondo_options INTERFACE -Werror)
endif()
if(RONDO_SANITIZE)
  # GCC 12 warns of uninitialised memory inside the standard library when it instruments.
  add_compile_options(-fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined
                      -Wno-maybe-uninitialized)
  add_link_options(-fsanitize=address,undefined)
endif()
if(RONDO_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

find_package(PkgConfig REQUIRED)
set(HDF5_PREFER_PARALLEL ON)
find_package(MPI REQUIRED COMPONENTS CXX)
find_package(HDF5 REQUIRED COMPONENTS C)
if(NOT HDF5_IS_PARALLEL)
  message(FATAL_ERROR "HDF5 was built without MPI; install libhdf5-openmpi-dev")
endif()
find_package(Boost REQUIRED COMPONENTS program_options)
find_package(nlohmann_json REQUIRED)
find_package(fmt REQUIRED)
find_package(pugixml REQUIRED)
pkg_check_modules(CLP REQUIRED IMPORTED_TARGET clp)
pkg_check_modules(CBC REQUIRED IMPORTED_TARGET cbc)
pkg_check_modules(PETSC REQUIRED IMPORTED_TARGET petsc)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)

# METIS has no CMake or pkg-config file on Debian.
find_path(METIS_INCLUDE metis.h REQUIRED)
find_library(METIS_LIBRARY NAMES metis REQUIRED)
add_library(rondo_metis INTERFACE)
target_include_directories(rondo_metis SYSTEM INTERFACE ${METIS_INCLUDE})
target_link_libraries(rondo_metis INTERFACE ${METIS_LIBRARY})

# nauty neither; its headers are C.
find_path(NAUTY_INCLUDE nauty/traces.h REQUIRED)
find_library(NAUTY_LIBRARY NAMES nauty REQUIRED)
add_library(rondo_nauty INTERFACE)
target_include_directories(rondo_nauty SYSTEM INTERFACE ${NAUTY_INCLUDE})
target_compile_definitions(rondo_nauty INTERFACE _Thread_local=thread_local)
target_link_libraries(rondo_nauty INTERFACE ${NAUTY_LIBRARY})

# LEMON 1.3 is header-only for what we use (max-flow, shortest paths); its headers predate our warnings and C++20.
find_path(LEMON_INCLUDE lemon/preflow.h REQUIRED)
find_library(LEMON_LIBRARY NAMES lemon REQUIRED)
add_library(rondo_lemon INTERFACE)
target_include_directories(rondo_lemon SYSTEM INTERFACE ${LEMON_INCLUDE})
target_link_libraries(rondo_lemon INTERFACE ${LEMON_LIBRARY})
