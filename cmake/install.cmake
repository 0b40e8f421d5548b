# make install: the program, its static libraries, the public headers,
# and what find_package(troupe) needs to find the rest.
include(CMakePackageConfigHelpers)
set(package "${PROJECT_BINARY_DIR}/package")
get_filename_component(TROUPE_TORCH_FOLDER "${TorchWheel_INCLUDE_DIR}" DIRECTORY)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/troupeConfig.cmake.in"
  "${package}/troupeConfig.cmake" INSTALL_DESTINATION lib/cmake/troupe)
write_basic_package_version_file("${package}/troupeConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)

get_filename_component(torch_library_folder "${TorchWheel_CPU_LIBRARY}" DIRECTORY)
set_target_properties(troupe PROPERTIES INSTALL_RPATH "${torch_library_folder}")
install(TARGETS troupe RUNTIME DESTINATION bin)
install(TARGETS troupe_runtime troupe_planner troupe_actors troupe_models troupe_text troupe_net troupe_plans troupe_config
  ARCHIVE DESTINATION lib)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/troupe/" DESTINATION include/troupe
  FILES_MATCHING PATTERN "*.hpp")
install(FILES "${package}/troupeConfig.cmake" "${package}/troupeConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindCAF.cmake" "${PROJECT_SOURCE_DIR}/cmake/FindTorchWheel.cmake"
  DESTINATION lib/cmake/troupe)
