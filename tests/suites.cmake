# Included by ctest: adds an entry per suite of a GoogleTest program, FOLDER.SUITE.
# Not per test: a process for each would load libtorch 1,400 times, six minutes of
# two cores. tests/CMakeLists.txt sets program, folder, label, deadline_s, serial and
# environment.
execute_process(COMMAND "${program}" --gtest_list_tests
  OUTPUT_VARIABLE listed RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  add_test(${folder}.not_listed "${program}" --gtest_list_tests)
  return()
endif()
string(REGEX MATCHALL "(^|\n)[^ \n.]+\\.\n|(^|\n)[^ \n.]+\\.  #" suites "${listed}")
foreach(suite IN LISTS suites)
  string(REGEX REPLACE "^\n?([^ \n.]+).*" "\\1" suite "${suite}")
  add_test("${folder}.${suite}" "${program}" "--gtest_filter=${suite}.*")
  set_tests_properties("${folder}.${suite}" PROPERTIES LABELS "${label}"
    TIMEOUT ${deadline_s} RUN_SERIAL ${serial} ENVIRONMENT "${environment}")
endforeach()
