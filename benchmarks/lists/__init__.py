"""How long lists, reports and exports of long traces take."""
