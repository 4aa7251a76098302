// Writes to every page of 64 MiB, twice, and checks them.
package main

import (
	"fmt"
	"os"
)

func main() {
	memory := make([]byte, 64<<20)
	for pass := byte(1); pass <= 2; pass++ {
		for at := 0; at < len(memory); at += 4096 {
			memory[at] += pass
		}
	}
	for at := 0; at < len(memory); at += 4096 {
		if memory[at] != 3 {
			os.Exit(2)
		}
	}
	fmt.Println("touched")
}
