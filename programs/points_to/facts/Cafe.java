interface Drink {}
class Tea    implements Drink {}
class Coffee implements Drink {}
class Mocha  extends Coffee {}

class Cup  { Drink content; }
class Seat { Cup cup; Seat next; }

class Cafe {
    static native boolean more();

    static Cup pour(Drink drink) {
        Cup cup = new Cup();
        cup.content = drink;
        return cup;
    }

    static Seat last(Seat seat) {
        Seat s = seat;
        while (more()) s = s.next;
        return s;
    }

    static void main() {
        Tea tea = new Tea();
        Mocha mocha = new Mocha();

        Cup mug = new Cup();
        mug.content = tea;
        Cup glass = pour(mocha);

        Seat window = new Seat();
        Seat corner = new Seat();
        window.next = corner;
        window.cup = mug;
        corner.cup = glass;

        Seat end = last(window);
        Cup theirs = end.cup;
        Drink sip = theirs.content;

        Coffee safe = (Coffee) glass.content;
        Coffee risky = (Coffee) sip;
    }
}
