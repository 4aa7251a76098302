import java.util.ArrayList;
import java.util.HashMap;

/** Allocates, keeps some, lets the rest be collected; prints a number that depends on all of it. */
public class Collect {
    public static void main(String[] arguments) {
        int rounds = Integer.parseInt(arguments[0]);
        HashMap<Integer, ArrayList<String>> kept = new HashMap<>();
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            ArrayList<String> list = new ArrayList<>();
            for (int j = 0; j < 16; j++) {
                list.add("item " + (i * 31 + j));
            }
            kept.put(i * 7919 % (rounds / 4 + 1), list);
        }
        for (ArrayList<String> list : kept.values()) {
            for (String item : list) {
                sum = sum * 31 + item.hashCode();
            }
        }
        System.out.println(kept.size() + " " + sum);
    }
}
