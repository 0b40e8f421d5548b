#include "my_workflow.hpp"

int main(int argc, char** argv) {
  return my_workflow::app().main(argc, argv);
}
