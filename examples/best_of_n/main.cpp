#include "best_of_n.hpp"

int main(int argc, char** argv) {
  return app().main(argc, argv);
}
