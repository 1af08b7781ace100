CREATE TABLE "operations"."schedule_deliveries" (
	"schedule_id" uuid NOT NULL,
	"delivery_id" text NOT NULL,
	"at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "schedule_deliveries_schedule_id_delivery_id_pk" PRIMARY KEY("schedule_id","delivery_id")
);
--> statement-breakpoint
ALTER TABLE "operations"."schedules" ADD COLUMN "secret_number" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "operations"."schedules" ADD COLUMN "previous_until" timestamp with time zone;--> statement-breakpoint
CREATE INDEX "schedule_deliveries_schedule_id_at_index" ON "operations"."schedule_deliveries" USING btree ("schedule_id","at");