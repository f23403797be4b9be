# The tests of all components that are built.
tests_NEEDS := check=check
# The receiver of callbacks speaks TLS.
tests_LIBS += $(if $(filter callback,$(COMPONENTS)),-lssl)
