# cmake --install: the program, what Slurm and users copy, and the library as a CMake package.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS rondo RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY jobs/topologies jobs/machines DESTINATION ${CMAKE_INSTALL_DATADIR}/rondo)
install(PROGRAMS slurm/solve.sbatch slurm/scaling.sbatch slurm/catalogue.sbatch slurm/submit.sh DESTINATION ${CMAKE_INSTALL_DATADIR}/rondo/slurm)
install(DIRECTORY slurm/modulefiles DESTINATION ${CMAKE_INSTALL_DATADIR})

# find_package(Rondo) gives Rondo::rondo, whose header is rondo/rondo.hpp: what the pipeline and the files need, without
# the command line, MSCCL and pictures. A module that one of these links and that is missing here fails to configure.
set(modules graph core model formulations parallel solvers decomp flows bounds engines local_search windows io pipeline catalogue)
add_library(rondo_library INTERFACE)
target_link_libraries(rondo_library INTERFACE rondo_io rondo_pipeline rondo_catalogue)
target_compile_features(rondo_library INTERFACE cxx_std_20)
set_target_properties(rondo_library PROPERTIES EXPORT_NAME rondo)
foreach(module IN LISTS modules)
  set_target_properties(rondo_${module} PROPERTIES EXPORT_NAME ${module})
  # The JSON of a file is for Rondo's own sources: its header asks for nlohmann_json.
  install(DIRECTORY include/rondo/${module} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rondo
          PATTERN json_files.hpp EXCLUDE PATTERN bound_files.hpp EXCLUDE PATTERN json_object.hpp EXCLUDE PATTERN read_as.hpp EXCLUDE)
endforeach()
install(FILES include/rondo/rondo.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rondo)
list(TRANSFORM modules PREPEND rondo_ OUTPUT_VARIABLE targets)
install(TARGETS rondo_library ${targets} EXPORT RondoTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Rondo)
install(EXPORT RondoTargets NAMESPACE Rondo:: DESTINATION ${package})
configure_package_config_file(cmake/RondoConfig.cmake.in ${PROJECT_BINARY_DIR}/RondoConfig.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/RondoConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/RondoConfig.cmake ${PROJECT_BINARY_DIR}/RondoConfigVersion.cmake
              cmake/RondoDependencies.cmake
        DESTINATION ${package})
