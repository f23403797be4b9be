module weekwheel.example/weekwheel

go 1.19
