CREATE INDEX "notify_deliveries_ended_at_index" ON "operations"."notify_deliveries" USING btree ("ended_at");--> statement-breakpoint
CREATE INDEX "durations_at_index" ON "operations"."durations" USING btree ("at");--> statement-breakpoint
CREATE INDEX "inbox_received_at_index" ON "operations"."inbox" USING btree ("received_at");