#include "troupe/app.hpp"

int main(int argc, char** argv) {
  return troupe::App{}.main(argc, argv);
}
